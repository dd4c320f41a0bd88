#pragma once

#include <tandem/units.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace tandem {

// How a process ended: with an exit code, or by a signal.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: none

  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  std::string text() const;  // "exit code 3", "signal 9 (Killed)"

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// What to start.
struct ProcessPlan {
  std::vector<std::string> command;      // the program is searched on PATH unless it contains a slash
  std::vector<std::string> environment;  // NAME=value
  bool reads_input = false;              // inherits our standard input; otherwise /dev/null
  int output = -1;                       // its standard output; -1: ours
  int error = -1;                        // its standard error; -1: ours
  std::vector<int> inherited = {};       // more file descriptors that it inherits
};

// A child process in its own session, so that signals to its group reach its children, and Ctrl-C reaches only the
// launcher. It is killed when the launcher dies or when this object is destroyed.
class Process {
 public:
  Process(int pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        pidfd_(std::move(other.pidfd_)),
        status_(other.status_),
        peak_memory_(other.peak_memory_) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  int pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the process has ended
  bool running() const { return pid_ > 0 && !status_; }
  const std::optional<ExitStatus>& status() const { return status_; }
  Bytes peak_memory() const { return peak_memory_; }  // of the largest of its processes; set when it has ended

  void signal_group(int signal) const;

  // Collects the exit status if the process has ended; true if this call did.
  bool reap();

  // Gives up on a process that SIGKILL does not end.
  void abandon() { pid_ = 0; }

  // Waits for the process to end, without a limit.
  ExitStatus wait();

 private:
  bool collect(int wait_options);

  int pid_;
  Fd pidfd_;
  std::optional<ExitStatus> status_;
  Bytes peak_memory_;
};

// A program that cannot be executed is an Error of kind Launch.
Process spawn(const ProcessPlan& plan);

}  // namespace tandem
