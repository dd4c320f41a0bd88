#include "checkpoint/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to(std::string_view action, const fs::path& path, int error, std::uint64_t num_bytes = 0) {
  fail(ErrorKind::Checkpoint, str("cannot ", action, ' ', path, ": ", errno_text(error)),
       write_hint(error, path, num_bytes));
}

class KernelFiles : public Files {
 public:
  void make_folder(const Path& path) override {
    if (::mkdir(path.c_str(), 0777) == 0 || (errno == EEXIST && std::filesystem::is_directory(path))) return;
    fail_to("create the folder", path, errno);
  }

  void write(const Path& path, const FileContent& content) override {
    const Fd file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
    if (!file) fail_to("create", path, errno);
    // A failed fsync is not retried: what the disk holds is unknown.
    const bool is_durable = write_all(file.get(), content) && ::fsync(file.get()) == 0;
    if (!is_durable) fail_to("write", path, errno, content.size());
  }

  void sync_folder(const Path& path) override {
    const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) fail_to("open the folder", path, errno);
    // EINVAL: this file system does not support fsync of folders.
    if (::fsync(folder.get()) != 0 && errno != EINVAL) fail_to("sync the folder", path, errno);
  }

  void rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_to(str("rename ", from, " to"), to, errno);
  }

  void exchange(const Path& one, const Path& other) override {
    if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return;
    if (errno != EINVAL && errno != ENOSYS) fail_to(str("exchange ", one, " with"), other, errno);
    fail(ErrorKind::Checkpoint, str("cannot replace ", other, ": this file system cannot exchange folders atomically"),
         "remove it first, or save to another folder");
  }

  void remove(const Path& path) noexcept override {
    std::error_code left_behind;
    fs::remove_all(path, left_behind);
  }
};

}  // namespace

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

}  // namespace tandem
