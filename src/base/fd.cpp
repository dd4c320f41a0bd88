#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/text.h"

namespace tandem {

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
    fail(ErrorKind::Launch, str("no pipe: ", errno_text(errno)), "check the limit of open files (ulimit -n)");
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

std::optional<std::string> read_all(int fd) {
  std::string text;
  std::array<char, 16384> chunk{};
  while (true) {
    const ssize_t count = ::read(fd, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

std::optional<std::string> read_if_there(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_all(file.get()) : std::nullopt;
}

std::string read_file(const std::filesystem::path& path, ErrorKind kind) {
  auto text = read_if_there(path);
  if (!text) fail(kind, str("cannot read ", path, ": ", errno_text(errno)), "check the path and its permissions");
  return *std::move(text);
}

void replace_file(const std::filesystem::path& path, std::string_view text, ErrorKind kind) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const bool is_stream = fs::exists(path, unknown) && !fs::is_regular_file(path, unknown);
  const fs::path place = is_stream ? path : fs::weakly_canonical(path, unknown);
  const fs::path written = is_stream ? path : fs::path(str(place, ".tmp-", ::getpid()));
  const auto put_in_place = [&](int file) {
    return is_stream || (::fsync(file) == 0 && ::rename(written.c_str(), place.c_str()) == 0);
  };
  const Fd file(::open(written.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  if (file && write_all(file.get(), text) && put_in_place(file.get())) return;
  const int error = errno;
  if (!is_stream) ::unlink(written.c_str());
  fail(kind, str("cannot write ", path, ": ", errno_text(error)),
       "check the folder, its permissions and the free space");
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace tandem
