#include "recipe/output.h"

#include <fcntl.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {

namespace fs = std::filesystem;

void check_output(const fs::path& path, const fs::path& input) {
  std::error_code missing;
  if (path.empty() || fs::equivalent(path, input, missing)) {
    fail(ErrorKind::Config, path.empty() ? "output is empty" : str("output is ", path, ", which is the input"),
         "name another file with --output");
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool can_write = opened && ::faccessat(opened.get(), ".", W_OK, AT_EACCESS) == 0;
  const int error = can_write ? EISDIR : errno;
  if (can_write && !fs::is_directory(path)) return;
  fail(ErrorKind::Data, str("cannot write ", path, ": ", errno_text(error)),
       "check the folder, its permissions and the free space");
}

void validate(const ExportOptions& o) {
  if (o.output.empty()) fail(ErrorKind::Config, "output is empty", "name the folder to create: --output my-model");
  if (fs::exists(o.output)) {
    fail(ErrorKind::Config, str("output is ", o.output, ", which exists already"), "name another, or remove it");
  }
}

void make_new_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path wanted = path.has_filename() ? path : path.parent_path();  // without a slash at its end
  const fs::path temporary = str(wanted, ".tmp-", ::getpid());
  const auto refuse = [&](const std::error_code& why) {
    fail(ErrorKind::Data, str("cannot create ", wanted, ": ", why.message()),
         "check the folder above it and its permissions");
  };
  std::error_code error;
  fs::create_directories(temporary, error);
  if (error) refuse(error);
  try {
    fill(temporary);
    fs::rename(temporary, wanted);
  } catch (const Error& failure) {
    fs::remove_all(temporary, error);
    fail(failure.kind(), replace_all(failure.message(), temporary.native(), wanted.native()), failure.hint());
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(temporary, error);
    refuse(failure.code());
  }
}

}  // namespace tandem
