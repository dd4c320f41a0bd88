#pragma once

#include <filesystem>
#include <utility>

#include "base/fd.h"

namespace tandem {

// The operations of which a save consists: the kernel's, or in tests such as fail or lose their effect. What goes wrong
// is an Error of kind Checkpoint.
class Files {
 public:
  using Path = std::filesystem::path;

  virtual ~Files() = default;

  virtual void make_folder(const Path& path) = 0;

  // Makes the file, or replaces it. Its bytes are durable when this returns, its name when the folder is synced.
  virtual void write(const Path& path, const FileContent& content) = 0;

  // The names in the folder are durable when this returns.
  virtual void sync_folder(const Path& path) = 0;

  // Within one folder, in one step: whoever looks sees both before or both after. `rename` replaces a file.
  virtual void rename(const Path& from, const Path& to) = 0;
  virtual void exchange(const Path& one, const Path& other) = 0;

  // A file, or a folder with all that is in it, as far as it can.
  virtual void remove(const Path& path) noexcept = 0;
};

Files& kernel_files();

// Makes a folder and those above it, durably.
void make_folders(Files& files, const std::filesystem::path& folder);

// A file or folder that goes with this object, unless it got another name.
class Temporary {
 public:
  Temporary(Files& files, std::filesystem::path path) : files_(files), path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) files_.remove(path_);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void release() { path_.clear(); }

 private:
  Files& files_;
  std::filesystem::path path_;
};

}  // namespace tandem
