#include "launch/ranks/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/program.h"
#include "base/text.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

struct Image {
  char** argv;
  char** environment;
  pid_t parent;
  int error_pipe;  // closed by a successful exec; otherwise it passes errno to the parent
};

// Runs between vfork and exec, in the parent's memory: system calls only.
[[noreturn]] void become(const ProcessPlan& plan, const Image& image) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != image.parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!plan.reads_input) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing > STDIN_FILENO) {
      ::dup2(nothing, STDIN_FILENO);
      ::close(nothing);
    }
  }
  if (plan.output >= 0) ::dup2(plan.output, STDOUT_FILENO);
  if (plan.error >= 0) ::dup2(plan.error, STDERR_FILENO);
  for (const int fd : plan.inherited) ::fcntl(fd, F_SETFD, 0);
  ::execvpe(image.argv[0], image.argv, image.environment);
  const int error = errno;
  const ssize_t ignored = ::write(image.error_pipe, &error, sizeof error);
  ::_exit(ignored == sizeof error ? 127 : 126);
}

}  // namespace

std::string ExitStatus::text() const {
  if (signal == 0) return str("exit code ", code);
  return str("signal ", signal, " (", ::strsignal(signal), ")");
}

Process::~Process() {
  signal_group(SIGKILL);
  collect(0);
}

void Process::signal_group(int signal) const {
  if (running()) ::kill(-pid_, signal);
}

bool Process::reap() { return collect(WNOHANG); }

ExitStatus Process::wait() {
  collect(0);
  return status_.value();
}

bool Process::collect(int wait_options) {
  if (!running()) return false;
  int status = 0;
  rusage usage{};
  pid_t ended = 0;
  do {
    ended = ::wait4(pid_, &status, wait_options, &usage);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid_) return false;
  peak_memory_ = {static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  status_ = WIFSIGNALED(status) ? ExitStatus{.code = 0, .signal = WTERMSIG(status)}
                                : ExitStatus{.code = WEXITSTATUS(status), .signal = 0};
  return true;
}

Process spawn(const ProcessPlan& plan) {
  std::vector<char*> argv = exec_words(plan.command);
  std::vector<char*> environment = exec_words(plan.environment);
  Pipe error_pipe = make_pipe();
  const Image image{.argv = argv.data(),
                    .environment = environment.data(),
                    .parent = ::getpid(),
                    .error_pipe = error_pipe.write.get()};
  const pid_t pid = ::vfork();  // several times cheaper than fork; unlike posix_spawn it allows PR_SET_PDEATHSIG
  if (pid < 0) {
    fail(ErrorKind::Launch, str("cannot start a process for ", plan.command.front(), ": ", errno_text(errno)),
         "check the limit of processes (ulimit -u) and the free memory");
  }
  if (pid == 0) become(plan, image);

  Process process(pid, open_pidfd(pid));
  const int pidfd_error = errno;
  error_pipe.write = Fd();
  int error = 0;
  if (::read(error_pipe.read.get(), &error, sizeof error) == sizeof error) fail_start(plan.command.front(), error);
  if (process.pidfd() < 0) {
    fail(ErrorKind::Launch, str("cannot open a pidfd for ", plan.command.front(), ": ", errno_text(pidfd_error)),
         pidfd_error == ENOSYS ? "Linux 5.3 or newer is required" : "check the limit of open files (ulimit -n)");
  }
  return process;
}

}  // namespace tandem
