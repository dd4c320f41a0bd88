#include "launch/launch.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <tandem/error.h>
#include <tandem/units.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "launch/port.h"
#include "launch/spawn.h"

namespace tandem {
namespace {

constexpr std::int64_t kMaxRanks = 4096;

// Signals that end a run arrive as data instead, as long as this lives.
class SignalQueue {
 public:
  SignalQueue() {
    ::sigemptyset(&watched_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (!is_ignored(signal)) ::sigaddset(&watched_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &watched_, &before_);
    fd_ = Fd(::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalQueue() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_.get(); }

  std::optional<int> take() const {
    signalfd_siginfo event{};
    if (::read(fd_.get(), &event, sizeof event) != sizeof event) return std::nullopt;
    return static_cast<int>(event.ssi_signo);
  }

 private:
  // nohup ignores SIGHUP for us. A blocked signal would reach the queue all the same.
  static bool is_ignored(int signal) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    return now.sa_handler == SIG_IGN;
  }

  sigset_t watched_{};
  sigset_t before_{};
  Fd fd_;
};

// The ranks of one run, from the first start to the last end.
class RankGroup {
 public:
  explicit RankGroup(std::chrono::milliseconds grace) : grace_(grace) {}

  void start(const ProcessPlan& plan) { ranks_.push_back(spawn(plan)); }

  LaunchResult wait(const SignalQueue& signals) {
    while (std::ranges::any_of(ranks_, &Process::running)) {
      wait_for_event(signals);
      while (const auto signal = signals.take()) interrupt(*signal);
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].reap() && !ranks_[rank].status()->ok()) note_failure(rank);
      }
      if (deadline_ && deadline_->passed()) signal_all(SIGKILL);
    }
    return result();
  }

 private:
  void wait_for_event(const SignalQueue& signals) const {
    std::vector<pollfd> events = {{.fd = signals.fd(), .events = POLLIN, .revents = 0}};
    for (const Process& rank : ranks_) {
      if (rank.running()) events.push_back({.fd = rank.pidfd(), .events = POLLIN, .revents = 0});
    }
    ::poll(events.data(), events.size(), deadline_ ? std::max(1, deadline_->poll_ms()) : -1);
  }

  void interrupt(int signal) {
    signal_all(interrupted_ ? SIGKILL : signal);
    if (!interrupted_) interrupted_ = signal;
    if (!deadline_) deadline_.emplace(grace_);
  }

  void note_failure(std::size_t rank) {
    if (interrupted_ || failed_rank_) return;
    failed_rank_ = rank;
    deadline_.emplace(grace_);
    signal_all(SIGTERM);
  }

  void signal_all(int signal) const {
    for (const Process& rank : ranks_) rank.signal_group(signal);
  }

  LaunchResult result() const {
    const std::string count =
        str(ranks_.size(), ranks_.size() == 1 ? " rank, " : " ranks, ", fixed(watch_.seconds(), 1), " s, ");
    if (interrupted_) {
      return {.exit_code = 128 + *interrupted_, .report = str(count, "stopped by signal ", *interrupted_)};
    }
    if (!failed_rank_) return {.exit_code = 0, .report = str(count, "all succeeded")};
    const ExitStatus status = *ranks_[*failed_rank_].status();
    return {.exit_code = status.shell_code(),
            .report = str(count, "rank ", *failed_rank_, " failed first: ", status.text())};
  }

  std::chrono::milliseconds grace_;
  std::vector<Process> ranks_;
  Stopwatch watch_;
  std::optional<std::size_t> failed_rank_;
  std::optional<int> interrupted_;
  std::optional<Deadline> deadline_;
};

}  // namespace

void validate(const LaunchOptions& options) {
  if (options.nproc < 1 || options.nproc > kMaxRanks) {
    fail(ErrorKind::Config, str("nproc-per-node is ", options.nproc, ", not a number of ranks from 1 to ", kMaxRanks),
         "try `tandem run -n 2 ...`");
  }
  if (options.shutdown_timeout < std::chrono::milliseconds(0)) {
    fail(ErrorKind::Config, str("shutdown-timeout is ", duration_text(options.shutdown_timeout), ", less than nothing"),
         "try 30s");
  }
}

LaunchResult launch(const LaunchOptions& options, const std::vector<std::string>& command) {
  const ReservedPort port = reserve_port();
  const SignalQueue signals;
  RankGroup group(options.shutdown_timeout);
  WorkerEnv env{.world = {.size = static_cast<int>(options.nproc), .local_size = static_cast<int>(options.nproc)},
                .master_port = port.number,
                .run_id = str(::getpid(), '-', port.number)};
  for (int rank = 0; rank < env.world.size; ++rank) {
    env.world.rank = env.world.local_rank = rank;
    group.start({.command = command, .environment = environment_with(worker_variables(env)), .reads_input = rank == 0});
  }
  return group.wait(signals);
}

}  // namespace tandem
