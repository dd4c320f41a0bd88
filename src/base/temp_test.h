#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace tandem {

// A temporary file.
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

// A temporary folder.
class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::temp_directory_path() / "tandem_test_XXXXXX") {
    path_ = std::filesystem::canonical(::mkdtemp(path_.data()));
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file and creates its parent folders; returns its path.
  std::string add(const std::string& name, std::string_view text = "", int mode = 0600) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    const Fd fd(::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, mode));
    write_all(fd.get(), text);
    return file;
  }

 private:
  std::string path_;
};

// A temporary environment variable of this process.
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
