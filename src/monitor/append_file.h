#pragma once

#include <filesystem>
#include <string_view>

#include "base/fd.h"

namespace tandem {

// A file to which whole records are added, each by one write: a process that is killed leaves no half of one.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path);  // goes on with the one that is there

  // An Error of kind Data when it cannot be done.
  void append(std::string_view record);

  // After a power cut or on a full disk there may be half a line: cuts it off.
  void drop_torn_line();

 private:
  [[noreturn]] void fail_to(std::string_view verb) const;

  std::filesystem::path path_;
  Fd file_;
};

}  // namespace tandem
