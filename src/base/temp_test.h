#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace tandem {

// A file that is gone with the test.
class TempFile {
 public:
  explicit TempFile(std::string_view text, std::string_view ending = ".yaml")
      : path_(std::filesystem::temp_directory_path() / "tandem_test_XXXXXX") {
    path_ += ending;
    const Fd file(::mkstemps(path_.data(), static_cast<int>(ending.size())));
    write_all(file.get(), text);
  }
  ~TempFile() { ::unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A variable of this process that is gone with the test.
class TempVariable {
 public:
  TempVariable(std::string name, const char* value) : name_(std::move(name)) { ::setenv(name_.c_str(), value, 1); }
  ~TempVariable() { ::unsetenv(name_.c_str()); }
  TempVariable(const TempVariable&) = delete;
  TempVariable& operator=(const TempVariable&) = delete;

 private:
  std::string name_;
};

}  // namespace tandem
