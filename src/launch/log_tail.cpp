#include "launch/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace tandem {
namespace {

constexpr std::size_t kPart = 65536;

std::size_t size_of(const Fd& file) {
  struct stat facts {};
  return ::fstat(file.get(), &facts) == 0 ? static_cast<std::size_t>(facts.st_size) : 0;
}

std::string read_at(const Fd& file, std::size_t offset, std::size_t size) {
  std::string part(size, '\0');
  const ssize_t count = ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(offset));
  part.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return part;
}

}  // namespace

bool LogTail::open() {
  if (!file_) file_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(file_);
}

void LogTail::skip_to_last_lines(std::size_t lines) {
  if (!open()) return;
  offset_ = size_of(file_);
  // The newline at the very end ends the last line and begins none.
  std::size_t end = offset_ == 0 || read_at(file_, offset_ - 1, 1) != "\n" ? offset_ : offset_ - 1;
  while (lines > 0 && end > 0) {
    const std::size_t begin = end - std::min(end, kPart);
    const std::string part = read_at(file_, begin, end - begin);
    std::size_t newline = part.size();
    while (lines > 0 && newline != std::string::npos) {
      newline = newline == 0 ? std::string::npos : part.rfind('\n', newline - 1);
      if (newline != std::string::npos) --lines;
    }
    end = begin;
    offset_ = newline == std::string::npos ? begin : begin + newline + 1;
  }
}

std::string LogTail::read() {
  if (!open()) return {};
  if (size_of(file_) < offset_) offset_ = 0;
  std::string part = read_at(file_, offset_, kPart);
  offset_ += part.size();
  return part;
}

}  // namespace tandem
