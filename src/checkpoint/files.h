#pragma once

#include <filesystem>
#include <utility>

#include "base/fd.h"

namespace tandem {

// The file operations of a save: the kernel's, or in tests ones that fail or are lost in a power cut. A failure is an
// Error of kind Checkpoint.
class Files {
 public:
  using Path = std::filesystem::path;

  virtual ~Files() = default;

  virtual void make_folder(const Path& path) = 0;

  // Creates or overwrites the file. Its bytes are durable when this returns, its name after sync_folder.
  virtual void write(const Path& path, const FileContent& content) = 0;

  // Makes the names in the folder durable.
  virtual void sync_folder(const Path& path) = 0;

  // Within one folder, atomically. `rename` replaces a file.
  virtual void rename(const Path& from, const Path& to) = 0;
  virtual void exchange(const Path& one, const Path& other) = 0;

  // Removes a file or a folder with its contents, as far as possible.
  virtual void remove(const Path& path) noexcept = 0;
};

Files& kernel_files();

// Creates a folder and its parents, durably.
void make_folders(Files& files, const std::filesystem::path& folder);

// Removes a file or folder on destruction, unless released after a rename.
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
