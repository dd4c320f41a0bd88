#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/fd.h"

namespace tandem {

// Reads a file that may still grow, or not exist yet, from its beginning.
class LogTail {
 public:
  explicit LogTail(std::filesystem::path path) : path_(std::move(path)) {}

  // Whether the file exists; tries again on each call until it does.
  bool open();

  // Skips all but the last lines of the current content. A last line without a newline counts.
  void skip_to_last_lines(std::size_t lines);

  // The next part of new content; empty if there is none. A truncated file is read from its beginning.
  std::string read();

 private:
  std::filesystem::path path_;
  Fd file_;
  std::size_t offset_ = 0;
};

}  // namespace tandem
