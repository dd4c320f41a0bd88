#include "launch/ranks/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>

#include "base/clock.h"
#include "base/text.h"
#include "launch/ranks/proc.h"
#include "launch/ranks/sweep.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kSweepLimit{10};
constexpr int kLauncherFd = STDERR_FILENO + 1;

// The guard must not keep the launcher's files open: pipes would not end, and ports would stay in use.
void close_all_but(int fd) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  ::dup2(fd, kLauncherFd);
  if (::syscall(SYS_close_range, kLauncherFd + 1, UINT_MAX, 0) == 0) return;
  for (int other = kLauncherFd + 1; other < 4096; ++other) ::close(other);  // Linux before 5.9
}

// A fork without SIGCHLD: wait(2) for any child ignores it, so that "no child left" means that no process of a rank is
// left.
pid_t fork_aside() { return static_cast<pid_t>(::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr)); }

[[noreturn]] void keep_watch(const std::string& run_id, Fd launcher) {
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);  // only SIGKILL ends the guard early
  ::prctl(PR_SET_NAME, "tandem-guard");
  close_all_but(launcher.get());
  pollfd ended{.fd = kLauncherFd, .events = POLLIN, .revents = 0};
  while (::poll(&ended, 1, -1) < 0) continue;
  const std::array<int, 1> except = {::getpid()};
  kill_processes(run_id, except, Deadline(kSweepLimit));
  ::_exit(0);
}

}  // namespace

Guard::Guard(std::string run_id) : run_id_(std::move(run_id)) { start(); }

void Guard::start() {
  Fd launcher = open_pidfd(::getpid());
  pid_ = launcher ? fork_aside() : -1;
  if (pid_ < 0) {
    fail(ErrorKind::Launch, str("cannot start the guard process: ", errno_text(errno)),
         "check the limits of processes and open files (ulimit -u, ulimit -n); Linux 5.3 or newer is required");
  }
  if (pid_ == 0) keep_watch(run_id_, std::move(launcher));
  pidfd_ = open_pidfd(pid_);
}

void Guard::renew() {
  dismiss();
  start();
}

void Guard::dismiss() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, __WALL) < 0 && errno == EINTR) continue;
}

}  // namespace tandem
