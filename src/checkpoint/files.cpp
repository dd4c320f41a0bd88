#include "checkpoint/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/crc32c.h"
#include "base/fd.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::uint64_t num_free_bytes(const fs::path& path) {
  struct statvfs facts {};
  return ::statvfs(path.parent_path().c_str(), &facts) == 0 ? facts.f_bavail * facts.f_frsize : 0;
}

std::string hint_for(int error, const fs::path& path, std::uint64_t num_bytes) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return str("free some space: this file takes ", num_bytes, " bytes, and ", num_free_bytes(path), " are left in ",
                 path.parent_path());
    case EFBIG: return str("raise the limit on the size of files (ulimit -f): this file takes ", num_bytes, " bytes");
    case EACCES:
    case EPERM:
    case EROFS: return "choose a folder that you may write to";
    default: return "check the path and the disk";
  }
}

[[noreturn]] void fail_to(std::string_view action, const fs::path& path, int error, std::uint64_t num_bytes = 0) {
  fail(ErrorKind::Checkpoint, str("cannot ", action, ' ', path, ": ", errno_text(error)),
       hint_for(error, path, num_bytes));
}

class KernelFiles : public Files {
 public:
  void make_folder(const Path& path) override {
    if (::mkdir(path.c_str(), 0777) == 0 || (errno == EEXIST && std::filesystem::is_directory(path))) return;
    fail_to("make the folder", path, errno);
  }

  void write(const Path& path, const FileContent& content) override {
    const Fd file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
    if (!file) fail_to("make the file", path, errno);
    bool is_written = write_all(file.get(), content.text);
    for (const std::string_view bytes : content.bytes) is_written = is_written && write_all(file.get(), bytes);
    if (!is_written) fail_to("write", path, errno, content.size());
    // After a failed fsync nobody knows what the disk has: there is no second try.
    if (::fsync(file.get()) != 0) fail_to("write", path, errno, content.size());
  }

  void sync_folder(const Path& path) override {
    const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) fail_to("open the folder", path, errno);
    // EINVAL: a file system that has no such thing, and makes names durable in its own way.
    if (::fsync(folder.get()) != 0 && errno != EINVAL) fail_to("sync the folder", path, errno);
  }

  void rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_to(str("rename ", from, " to"), to, errno);
  }

  void exchange(const Path& one, const Path& other) override {
    if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return;
    if (errno != EINVAL && errno != ENOSYS) fail_to(str("exchange ", one, " with"), other, errno);
    fail(ErrorKind::Checkpoint,
         str("cannot replace ", other, ": this file system does not exchange folders in one step"),
         "remove it first, or save into another folder");
  }

  void remove(const Path& path) noexcept override {
    std::error_code left_behind;
    fs::remove_all(path, left_behind);
  }
};

}  // namespace

std::uint64_t FileContent::size() const {
  std::uint64_t size = text.size();
  for (const std::string_view part : bytes) size += part.size();
  return size;
}

std::uint32_t FileContent::crc32c() const {
  std::uint32_t crc = tandem::crc32c(text);
  for (const std::string_view part : bytes) crc = tandem::crc32c(part, crc);
  return crc;
}

Files& kernel_files() {
  static KernelFiles files;
  return files;
}

void make_folders(Files& files, const fs::path& folder) {
  std::error_code unknown;
  if (fs::is_directory(folder, unknown)) return;
  const fs::path parent = fs::absolute(folder).parent_path();
  if (!folder.has_filename()) return make_folders(files, parent);
  make_folders(files, parent);
  files.make_folder(folder);
  files.sync_folder(parent);
}

void replace_file(Files& files, const fs::path& path, const FileContent& content) {
  const fs::path folder = fs::absolute(path).parent_path();
  // Ranks that all write the same file, by mistake, still leave a whole one.
  Temporary temporary(files, folder / str(kTemporaryPrefix, path.filename(), '-', ::getpid()));
  files.write(temporary.path(), content);
  files.rename(temporary.path(), path);
  temporary.release();
  files.sync_folder(folder);
}

}  // namespace tandem
