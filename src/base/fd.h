#pragma once

#include <tandem/error.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {

// Owns one file descriptor.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Opens those of the three standard streams that are closed, so that no file of ours gets their numbers: nothing comes
// out of them, and writing to them fails as it did before.
void fill_closed_streams();

// The two ends of a pipe; a program that we become does not inherit them.
struct Pipe {
  Fd read;
  Fd write;
};
Pipe make_pipe();

// All of `text`, whatever the kernel takes at a time. False when the other end is gone (errno says why).
bool write_all(int fd, std::string_view text);

// Everything up to the end of the stream; nothing when it cannot be read (errno says why).
std::optional<std::string> read_all(int fd);

// The whole file; an Error of that kind when it cannot be read.
std::string read_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::Data);

// The same of a file that need not be there, or that we may not read; then nothing.
std::optional<std::string> read_if_there(const std::filesystem::path& path);

// Puts a file in its place in one step: until then, and when anything goes wrong, the old one stays. Through a link it
// replaces what the link points to; into a pipe or a device it writes.
void replace_file(const std::filesystem::path& path, std::string_view text, ErrorKind kind = ErrorKind::Data);

// "No such file or directory" and the like, for the errno of a call that just failed.
std::string errno_text(int error);

}  // namespace tandem
