#pragma once

#include <tandem/error.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  int release() noexcept { return std::exchange(fd_, -1); }  // the caller owns it now
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Opens those of the three standard streams that are closed, so that no other file gets their numbers: reading gives
// nothing, and writing still fails.
void fill_closed_streams();

// A pipe; both ends are close-on-exec.
struct Pipe {
  Fd read;
  Fd write;
};
Pipe make_pipe();

// What a file will hold: a text that it owns, followed by bytes that the caller owns.
struct FileContent {
  std::string text;
  std::vector<std::string_view> bytes = {};

  std::uint64_t size() const;
  std::uint32_t crc32c() const;
};

// Writes everything, in as many calls as the kernel needs. False on failure (errno says why), such as a closed pipe.
bool write_all(int fd, std::string_view text);
bool write_all(int fd, const FileContent& content);

// For a pipe or a device in place of a file: how long nothing may arrive, and how much may. Neither need have an end.
struct StreamLimits {
  std::chrono::milliseconds silence = std::chrono::minutes(1);
  std::size_t num_bytes = std::size_t{1} << 30;
};

// Reads up to the end of the stream; nothing on failure (errno says why: EFBIG if there is more than `num_bytes`).
std::optional<std::string> read_all(int fd, std::size_t num_bytes = StreamLimits().num_bytes);

// The whole file; an Error of that kind if it cannot be read. It may be a pipe, as in `--config <(command)`.
std::string read_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::Data,
                      const StreamLimits& limits = {});

// A regular file, opened for reading. A fifo is refused: to open or read one may take for ever.
struct OpenFile {
  Fd fd;
  std::uint64_t size = 0;
  int error = 0;  // why it was not opened: errno or kNotRegular
};
constexpr int kNotRegular = -1;
OpenFile open_regular(const std::filesystem::path& path);

// The whole of a regular file of at most `limit` bytes, for callers to whom it matters why it cannot be read.
struct FileText {
  std::optional<std::string> text;
  int error = 0;  // why there is none
};
FileText read_regular(const std::filesystem::path& path, std::uint64_t limit = UINT64_MAX);

// The whole of a regular file; an Error of that kind if it cannot be read. The optional file need not exist.
std::string read_regular_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::Data);
std::optional<std::string> read_optional_file(const std::filesystem::path& path, ErrorKind kind = ErrorKind::Data);

// The whole of a regular file; nothing if it does not exist or cannot be read.
std::optional<std::string> read_if_there(const std::filesystem::path& path);

// A name with this prefix is a file or folder that is being written. If the process dies it is left behind.
constexpr std::string_view kTemporaryPrefix = ".tmp-";

// Writes a file atomically and durably (temporary file, fsync, rename): after a failure the old one is unchanged. A
// symbolic link is followed; a pipe or a device is written to.
void replace_file(const std::filesystem::path& path, const FileContent& content, ErrorKind kind = ErrorKind::Data);
void replace_file(const std::filesystem::path& path, std::string_view text, ErrorKind kind = ErrorKind::Data);

// The hint for a file of `num_bytes` that could not be written because of `error`.
std::string write_hint(int error, const std::filesystem::path& path, std::uint64_t num_bytes);

// "No such file or directory" and the like; kNotRegular too.
std::string errno_text(int error);

}  // namespace tandem
