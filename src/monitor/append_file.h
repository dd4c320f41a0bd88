#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace tandem {

// A file to which records are appended, each with one write(2), so that a killed process leaves no partial record.
class AppendFile {
 public:
  // Appends to an existing file. `hint` is used in Errors of failed writes.
  explicit AppendFile(std::filesystem::path path,
                      std::string hint = "free some space there, or choose another folder with --run-dir");

  // An Error of kind Data on failure.
  void append(std::string_view record);

  // Removes a partial last line, as left by a power cut or a full disk.
  void drop_torn_line();

 private:
  [[noreturn]] void fail_to(std::string_view verb) const;

  std::filesystem::path path_;
  std::string hint_;
  Fd file_;
};

}  // namespace tandem
