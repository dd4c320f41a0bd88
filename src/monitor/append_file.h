#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace tandem {

// A file to which whole records are added, each by one write: a process that is killed leaves no half of one.
class AppendFile {
 public:
  // Goes on with the file that is there. `hint` is for what cannot be written.
  explicit AppendFile(std::filesystem::path path,
                      std::string hint = "free some space there, or put the run elsewhere with --run-dir");

  // An Error of kind Data when it cannot be done.
  void append(std::string_view record);

  // After a power cut or on a full disk there may be half a line: cuts it off.
  void drop_torn_line();

 private:
  [[noreturn]] void fail_to(std::string_view verb) const;

  std::filesystem::path path_;
  std::string hint_;
  Fd file_;
};

}  // namespace tandem
