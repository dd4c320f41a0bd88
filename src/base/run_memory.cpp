#include "base/run_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace tandem {
namespace {

constexpr int kLowestFd = 100;  // shell scripts open small numbers explicitly
constexpr int kMemorySeals = F_SEAL_SHRINK | F_SEAL_SEAL;

}  // namespace

Fd create_memory_file(const char* name) {
  const Fd low(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  Fd fd(::fcntl(low.get(), F_DUPFD_CLOEXEC, kLowestFd));
  if (!fd) fd = Fd(::fcntl(low.get(), F_DUPFD_CLOEXEC, 0));  // the limit of open files is below kLowestFd
  return fd;
}

Fd create_run_memory() {
  Fd fd = create_memory_file("tandem-memory");
  if (fd && ::fcntl(fd.get(), F_ADD_SEALS, kMemorySeals) == 0) return fd;
  fail(ErrorKind::Launch, str("cannot create the shared memory of the ranks: ", errno_text(errno)),
       "check the limit of open files (ulimit -n)");
}

std::optional<int> inherited_memory(const WorkerEnv& env) {
  struct stat file {};
  const bool is_ours = env.world.num_nodes == 1 && ::fcntl(env.memory_fd, F_GET_SEALS) == kMemorySeals &&
                       ::fstat(env.memory_fd, &file) == 0 && file.st_uid == ::geteuid();
  return is_ours ? std::optional(env.memory_fd) : std::nullopt;
}

bool grow_run_memory(int fd, std::size_t size) {
  const auto wanted = static_cast<off_t>(size);
  struct stat file {};
  if (::fstat(fd, &file) != 0) return false;
  if (file.st_size >= wanted || ::ftruncate(fd, wanted) == 0) return true;
  // The seal refuses to shrink it: another rank has made it longer in the meantime.
  return errno == EPERM && ::fstat(fd, &file) == 0 && file.st_size >= wanted;
}

}  // namespace tandem
