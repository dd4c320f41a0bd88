#include "launch/cause/python.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tandem/error.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "sitecustomize.h"

namespace tandem {

void write_sitecustomize(const std::filesystem::path& folder) {
  ::mkdir(folder.c_str(), 0700);
  const std::filesystem::path path = folder / "sitecustomize.py";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || !write_all(file.get(), kSitecustomize)) {
    fail(ErrorKind::Launch, str("cannot write ", path, ": ", errno_text(errno)),
         "set TANDEM_STATE_DIR to a folder that you can write to");
  }
}

}  // namespace tandem
