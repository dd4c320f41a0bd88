#include "checkpoint/same_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/text.h"

namespace tandem {

SameFolder::SameFolder(std::filesystem::path path)
    : path_(std::move(path)), folder_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_) return;
  fail(ErrorKind::Checkpoint, str("cannot open the folder ", path_, ": ", errno_text(errno)),
       "check the path and its permissions");
}

void SameFolder::check() const {
  struct stat then {};
  struct stat now {};
  const int error = ::stat(path_.c_str(), &now) == 0 ? 0 : errno;
  const bool is_known = ::fstat(folder_.get(), &then) == 0;
  if (error == 0 && is_known && then.st_dev == now.st_dev && then.st_ino == now.st_ino) return;
  fail(ErrorKind::Checkpoint,
       str("checkpoint: the folder ", path_, " was removed, renamed or replaced during the run",
           error == 0 ? "" : str(": ", errno_text(error))),
       "nothing was saved to it: move the folder back, then resume from its last checkpoint");
}

}  // namespace tandem
