#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/fd.h"

namespace tandem {

// A file that may still grow, or not be there yet, read from its beginning, byte for byte.
class LogTail {
 public:
  explicit LogTail(std::filesystem::path path) : path_(std::move(path)) {}

  // Whether the file is there; looks again each time it was not.
  bool open();

  // Leaves out all but the last lines of what is there now. A line without a newline at the end counts.
  void skip_to_last_lines(std::size_t lines);

  // What came since, a part of it at a time; empty when nothing did. A file that was cut short is read anew.
  std::string read();

 private:
  std::filesystem::path path_;
  Fd file_;
  std::size_t offset_ = 0;
};

}  // namespace tandem
