#include "monitor/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace tandem {
namespace {

// The end of the last complete line, searched from the end of the file; -1 if it cannot be read.
off_t end_of_lines(int fd, off_t size) {
  std::array<char, 4096> block{};
  while (size > 0) {
    const off_t begin = size > static_cast<off_t>(block.size()) ? size - static_cast<off_t>(block.size()) : 0;
    const ssize_t length = ::pread(fd, block.data(), static_cast<std::size_t>(size - begin), begin);
    if (length != size - begin) return -1;
    const std::size_t end = std::string_view(block.data(), static_cast<std::size_t>(length)).rfind('\n');
    if (end != std::string_view::npos) return begin + static_cast<off_t>(end) + 1;
    size = begin;
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, std::string hint)
    : path_(std::move(path)),
      hint_(std::move(hint)),
      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_) fail_to("open");
}

void AppendFile::append(std::string_view record) {
  if (!write_all(file_.get(), record)) fail_to("write");
}

void AppendFile::drop_torn_line() {
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  const off_t end = end_of_lines(file_.get(), size);
  if (end < 0) fail_to("read");
  if (end < size && ::ftruncate(file_.get(), end) != 0) fail_to("write");
}

void AppendFile::fail_to(std::string_view verb) const {
  fail(ErrorKind::Data, str("cannot ", verb, ' ', path_, ": ", errno_text(errno)), hint_);
}

}  // namespace tandem
