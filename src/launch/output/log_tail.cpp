#include "launch/output/log_tail.h"

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

// The offset after the last newline before `end`.
std::size_t line_begin(const Fd& file, std::size_t end) {
  constexpr std::size_t kStep = 4096;
  while (end > 0) {
    const std::size_t begin = end - std::min(end, kStep);
    const std::size_t newline = read_at(file, begin, end - begin).rfind('\n');
    if (newline != std::string::npos) return begin + newline + 1;
    end = begin;
  }
  return 0;
}

}  // namespace

bool LogTail::open() {
  if (!file_) file_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(file_);
}

void LogTail::skip_to_last_lines(std::size_t lines) {
  if (!open()) return;
  offset_ = size_of(file_);
  if (lines == 0 || offset_ == 0) return;
  const bool ends_line = read_at(file_, offset_ - 1, 1) == "\n";
  offset_ = line_begin(file_, ends_line ? offset_ - 1 : offset_);
  while (--lines > 0 && offset_ > 0) offset_ = line_begin(file_, offset_ - 1);
}

std::string LogTail::read() {
  if (!open()) return {};
  if (size_of(file_) < offset_) offset_ = 0;
  std::string part = read_at(file_, offset_, kPart);
  offset_ += part.size();
  return part;
}

}  // namespace tandem
