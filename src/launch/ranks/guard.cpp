#include "launch/ranks/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
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
#include <ctime>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "launch/ranks/proc.h"
#include "launch/ranks/sweep.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kSweepLimit{10};
constexpr std::chrono::seconds kLastLook{1};
constexpr std::chrono::milliseconds kLookEvery{20};
constexpr int kParentTurnMs = 100;
constexpr std::chrono::milliseconds kGuardDelay{50};

sigset_t block_all_signals() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  return before;
}

// The signals that are pending while all are blocked.
std::vector<int> take_pending() {
  std::vector<int> signals;
  sigset_t all;
  ::sigfillset(&all);
  const timespec now{};
  for (int signal = 0; (signal = ::sigtimedwait(&all, nullptr, &now)) > 0;) signals.push_back(signal);
  return signals;
}

// Of this process. To read the list costs a millisecond, which nearly always can be saved.
std::vector<int> children_so_far() {
  siginfo_t ignored{};
  const bool has_some = ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) == 0;
  return has_some ? child_processes(::getpid()) : std::vector<int>();
}

// The launcher's pipes would not end, and its ports would stay in use.
void close_all_files() {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, 0) == 0) return;
  for (int other = STDERR_FILENO + 1; other < 4096; ++other) ::close(other);  // Linux before 5.9
}

// A fork without SIGCHLD: wait(2) for any child ignores it, so that "no child left" means that no process of the job is
// left.
pid_t fork_aside() { return static_cast<pid_t>(::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr)); }

[[noreturn]] void keep_watch(const std::string& run_id, const Fd& parent, const Fd& launcher) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);  // wakes the guard if it has been stopped
  set_title(kGuardTitle);
  std::array<pollfd, 2> ended = {pollfd{.fd = parent.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = launcher.get(), .events = POLLIN, .revents = 0}};
  while (::poll(ended.data(), ended.size(), -1) < 0) continue;
  // After the end of the launcher the parent dismisses the guard, unless it has been killed or stopped, too.
  if (ended[0].revents == 0) ::poll(ended.data(), 1, kParentTurnMs);
  for (const Fd* process : {&parent, &launcher}) send_signal(*process, SIGCONT);
  kill_processes(run_id, Deadline(kSweepLimit));
  // Nobody else can: look again for a while, since the environment of a process is empty for a moment during its exec.
  const Deadline last_look(kLastLook);
  while (::poll(ended.data(), ended.size(), 0) == 2 && !last_look.passed()) {
    kill_processes(run_id, Deadline(kSweepLimit));
    std::this_thread::sleep_for(kLookEvery);
  }
  ::_exit(0);
}

// The process that the user started.
class Parent {
 public:
  // `earlier`: children that this process had before, such as those of a shell that became us by exec. They stay.
  Parent(const std::string& run_id, pid_t launcher, std::vector<int> earlier)
      : run_id_(run_id), launcher_(launcher), spared_(std::move(earlier)) {
    close_all_files();
    sigset_t all;
    ::sigfillset(&all);
    signals_ = Fd(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
    own_pidfd_ = open_pidfd(::getpid());
    launcher_pidfd_ = open_pidfd(launcher_);
  }

  [[noreturn]] void run() {
    // Not at once: the guard costs time while the ranks start, and a job that ends sooner does without.
    const Deadline guard_due(kGuardDelay);
    while (!end_) {
      std::array<pollfd, 2> events = {pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                      pollfd{.fd = guard_pidfd_.get(), .events = POLLIN, .revents = 0}};
      ::poll(events.data(), events.size(), guard_pid_ == 0 ? guard_due.poll_ms() : -1);
      take_signals();
      if (end_) break;
      if (events[1].revents != 0) dismiss_guard();
      if (events[1].revents != 0 || (guard_pid_ == 0 && guard_due.passed())) start_guard();
    }
    // A launcher that has ended by itself has given up on what is left.
    spared_.push_back(guard_pid_);
    kill_descendants(spared_, Deadline(WIFSIGNALED(*end_) ? kSweepLimit : kLastLook));
    dismiss_guard();
    end_like_launcher();
  }

 private:
  void start_guard() {
    guard_pid_ = fork_aside();
    if (guard_pid_ == 0) keep_watch(run_id_, own_pidfd_, launcher_pidfd_);
    guard_pidfd_ = guard_pid_ > 0 ? open_pidfd(guard_pid_) : Fd();
  }

  void dismiss_guard() const {
    if (guard_pid_ <= 0) return;
    ::kill(guard_pid_, SIGKILL);
    while (::waitpid(guard_pid_, nullptr, __WALL) < 0 && errno == EINTR) continue;
  }

  void take_signals() {
    signalfd_siginfo event{};
    while (::read(signals_.get(), &event, sizeof event) == sizeof event) {
      const int signal = static_cast<int>(event.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (signal == SIGTSTP || signal == SIGCONT) stops_with_launcher_ = signal == SIGTSTP;
      ::kill(launcher_, signal);  // not reaped yet, so the pid is still its own
    }
    int status = 0;
    if (::waitpid(launcher_, &status, WNOHANG | WUNTRACED) != launcher_) return;
    if (!WIFSTOPPED(status)) {
      end_ = status;
    } else if (stops_with_launcher_) {  // Ctrl-Z; the shell's `fg` then sends us SIGCONT
      ::kill(::getpid(), SIGSTOP);
    }
  }

  [[noreturn]] void end_like_launcher() const {
    if (!WIFSIGNALED(*end_)) ::_exit(WEXITSTATUS(*end_));
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int number = WTERMSIG(*end_);
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, number);
    ::signal(number, SIG_DFL);
    ::kill(::getpid(), number);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
    ::_exit(128 + number);
  }

  const std::string& run_id_;
  pid_t launcher_;
  std::vector<int> spared_;
  Fd signals_;
  Fd own_pidfd_;
  Fd launcher_pidfd_;
  pid_t guard_pid_ = 0;  // 0: not started yet; -1: it could not be started
  Fd guard_pidfd_;
  bool stops_with_launcher_ = false;
  std::optional<int> end_;  // wait status of the launcher
};

}  // namespace

// In place: the memory of the command line is found in fields 48 and 49 of /proc/self/stat.
void set_title(const char* title) {
  ::prctl(PR_SET_NAME, title);
  const std::string stat = read_if_there("/proc/self/stat").value_or("");
  const std::vector<std::string> fields = split(std::string_view(stat).substr(stat.rfind(')') + 1), ' ');
  if (fields.size() < 48) return;
  const auto begin = to_unsigned(fields[46]).value_or(0);
  const auto end = to_unsigned(fields[47]).value_or(0);
  if (begin == 0 || end <= begin) return;
  const std::span memory(reinterpret_cast<char*>(begin), end - begin);  // NOLINT(performance-no-int-to-ptr)
  std::ranges::fill(memory, '\0');
  std::string_view(title).copy(memory.data(), memory.size() - 1);
}

int run_guarded(const std::string& run_id, const std::function<int(int parent)>& job) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, the exit status of a child is lost
  const pid_t parent = ::getpid();
  const sigset_t before = block_all_signals();  // none is lost until it can be passed on
  const std::vector<int> pending = take_pending();
  const std::vector<int> earlier = children_so_far();
  const pid_t launcher = ::fork();
  const int error = errno;
  if (launcher > 0) Parent(run_id, launcher, earlier).run();
  for (const int signal : pending) ::kill(::getpid(), signal);  // before it starts anything
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (launcher < 0) {
    fail(ErrorKind::Launch, str("cannot start the launcher process: ", errno_text(error)),
         "check the limit of processes (ulimit -u) and the free memory");
  }
  ::setpgid(0, 0);  // what the terminal sends comes once, from the parent
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  return job(parent);
}

}  // namespace tandem
