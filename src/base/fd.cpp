#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <tandem/units.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "base/crc32c.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWriteHint = "check the folder, its permissions and the free space";

// Renames a file that was written under a temporary name, durably. EINVAL: this file system does not support fsync of
// folders.
bool move_to(const fs::path& target, int file, const fs::path& temporary) {
  if (::fsync(file) != 0 || ::rename(temporary.c_str(), target.c_str()) != 0) return false;
  const Fd folder(::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && (::fsync(folder.get()) == 0 || errno == EINVAL);
}

// What a link points to, if there is a file; as an absolute path.
fs::path link_target(const fs::path& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? fs::path(real.get()) : fs::absolute(path);
}

// Opening a pipe without O_NONBLOCK would wait for a program that writes to it.
OpenFile open_to_read(const fs::path& path) {
  OpenFile file{.fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY))};
  struct stat facts {};
  if (!file.fd || ::fstat(file.fd.get(), &facts) != 0) {
    file.error = errno;
  } else if (!S_ISREG(facts.st_mode)) {
    file.error = S_ISDIR(facts.st_mode) ? EISDIR : kNotRegular;
  }
  file.size = static_cast<std::uint64_t>(facts.st_size);
  return file;
}

bool wait_for_input(int fd, std::chrono::milliseconds silence) {
  pollfd stream{.fd = fd, .events = POLLIN, .revents = 0};
  const int num_ready = ::poll(&stream, 1, static_cast<int>(silence.count()));
  if (num_ready == 0) errno = ETIME;
  return num_ready > 0 || (num_ready < 0 && errno == EINTR);
}

// With a limit on the silence, that of a stream that was opened without blocking.
std::optional<std::string> read_chunks(int fd, std::size_t num_bytes,
                                       std::optional<std::chrono::milliseconds> silence) {
  std::string text;
  std::array<char, 16384> chunk{};
  while (!silence || wait_for_input(fd, *silence)) {
    const ssize_t count = ::read(fd, chunk.data(), chunk.size());
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && silence))) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() <= num_bytes) continue;
    errno = EFBIG;
    return std::nullopt;
  }
  return std::nullopt;
}

[[noreturn]] void fail_to_read(const fs::path& path, ErrorKind kind, int error, const StreamLimits& limits = {}) {
  const std::string what = str("cannot read ", path, ": ");
  const char* const hint = "it is a pipe or a device: save its output as a file, and name that";
  switch (error) {
    case ETIME: fail(kind, str(what, "nothing was written to it for ", duration_text(limits.silence)), hint);
    case EFBIG:
      fail(kind, str(what, "it has more than ", bytes_text({limits.num_bytes}), ", perhaps without an end"), hint);
    default: fail(kind, str(what, errno_text(error)), "check the path and its permissions");
  }
}

// What is full: the inodes, or the space.
std::string hint_of_full_disk(const fs::path& path, std::uint64_t num_bytes) {
  struct statvfs facts {};
  const bool is_known = ::statvfs(path.parent_path().c_str(), &facts) == 0;
  if (is_known && facts.f_files > 0 && facts.f_favail == 0) {
    return str("remove some files: no inodes are left in ", path.parent_path());
  }
  return str("free some space: this file takes ", num_bytes, " bytes, and ", facts.f_bavail * facts.f_frsize,
             " are left in ", path.parent_path());
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

void fill_closed_streams() {
  int fd = -1;
  do {
    fd = ::open("/dev/null", O_RDONLY);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  const Fd one_too_many(fd);
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(ErrorKind::Launch, str("cannot make a pipe: ", errno_text(errno)),
         "check the limit on open files (ulimit -n)");
  }
  return {.read = Fd(ends[0]), .write = Fd(ends[1])};
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_all(int fd, const FileContent& content) {
  bool is_written = write_all(fd, content.text);
  for (const std::string_view bytes : content.bytes) is_written = is_written && write_all(fd, bytes);
  return is_written;
}

std::optional<std::string> read_all(int fd, std::size_t num_bytes) { return read_chunks(fd, num_bytes, std::nullopt); }

std::string read_file(const fs::path& path, ErrorKind kind, const StreamLimits& limits) {
  const OpenFile file = open_to_read(path);
  const bool is_stream = file.error == kNotRegular;
  if (file.error != 0 && !is_stream) fail_to_read(path, kind, file.error);
  auto text = is_stream ? read_chunks(file.fd.get(), limits.num_bytes, limits.silence)
                        : read_all(file.fd.get(), std::string::npos);
  if (!text) fail_to_read(path, kind, errno, limits);
  return *std::move(text);
}

OpenFile open_regular(const fs::path& path) {
  OpenFile file = open_to_read(path);
  if (file.error != 0) file.fd = Fd();
  return file;
}

FileText read_regular(const fs::path& path, std::uint64_t limit) {
  const OpenFile file = open_regular(path);
  if (!file.fd) return {.text = std::nullopt, .error = file.error};
  if (file.size > limit) return {.text = std::nullopt, .error = EFBIG};
  FileText result{.text = read_all(file.fd.get(), std::string::npos)};
  if (!result.text) result.error = errno;
  return result;
}

std::string read_regular_file(const fs::path& path, ErrorKind kind) {
  FileText file = read_regular(path);
  if (!file.text) fail_to_read(path, kind, file.error);
  return *std::move(file.text);
}

std::optional<std::string> read_optional_file(const fs::path& path, ErrorKind kind) {
  FileText file = read_regular(path);
  if (!file.text && file.error != ENOENT) fail_to_read(path, kind, file.error);
  return std::move(file.text);
}

std::optional<std::string> read_if_there(const fs::path& path) { return read_regular(path).text; }

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

void replace_file(const fs::path& path, const FileContent& content, ErrorKind kind) {
  std::error_code unknown;
  const bool is_stream = fs::exists(path, unknown) && !fs::is_regular_file(path, unknown);
  const fs::path target = is_stream ? path : link_target(path);
  // The process id: ranks that all write the same file, by mistake, still leave a whole one.
  const fs::path temporary = target.parent_path() / str(kTemporaryPrefix, target.filename(), '-', ::getpid());
  const fs::path& written = is_stream ? path : temporary;
  const Fd file(::open(written.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  if (file && write_all(file.get(), content) && (is_stream || move_to(target, file.get(), written))) return;
  const int error = errno;
  if (!is_stream) ::unlink(written.c_str());
  fail(kind, str("cannot write ", path, ": ", errno_text(error)),
       is_stream ? kWriteHint : write_hint(error, target, content.size()));
}

void replace_file(const fs::path& path, std::string_view text, ErrorKind kind) {
  replace_file(path, FileContent{.text = "", .bytes = {text}}, kind);
}

std::string write_hint(int error, const fs::path& path, std::uint64_t num_bytes) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return hint_of_full_disk(path, num_bytes);
    case EFBIG: return str("raise the limit on the size of files (ulimit -f): this file takes ", num_bytes, " bytes");
    case EACCES:
    case EPERM:
    case EROFS: return "choose a folder that you may write to";
    default: return kWriteHint;
  }
}

std::string errno_text(int error) {
  return error == kNotRegular ? "it is not a regular file" : std::generic_category().message(error);
}

}  // namespace tandem
