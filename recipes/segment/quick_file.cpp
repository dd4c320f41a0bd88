#include "recipes/segment/quick_file.h"

#include <fcntl.h>
#include <tandem/error.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace tandem::segment {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  fail(ErrorKind::Data, str("cannot create the folder ", folder, ": ", error.message()),
       "check the folder above it and its permissions");
}

void write_quickly(const fs::path& path, std::string_view bytes) {
  const fs::path temporary = path.parent_path() / str(kTemporaryPrefix, path.filename(), '-', ::getpid());
  const Fd file(::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  if (file && write_all(file.get(), bytes) && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  ::unlink(temporary.c_str());
  fail(ErrorKind::Data, str("cannot write ", path, ": ", errno_text(error)), write_hint(error, path, bytes.size()));
}

bool ends_as_png(const fs::path& path) {
  using namespace std::string_view_literals;
  constexpr std::string_view kEnd = "\0\0\0\0IEND\xae\x42\x60\x82"sv;
  const OpenFile file = open_regular(path);
  std::array<char, kEnd.size()> tail = {};
  if (!file.fd || file.size < tail.size()) return false;
  const auto num_read = ::pread(file.fd.get(), tail.data(), tail.size(), static_cast<off_t>(file.size - tail.size()));
  return std::string_view(tail.data(), tail.size()) == kEnd && num_read == std::ssize(tail);
}

}  // namespace tandem::segment
