#pragma once

#include <tandem/units.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace tandem {

// How a process ended: by itself with a code, or by a signal.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: none

  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
  std::string text() const;  // "exit code 3", "signal 9 (Killed)"

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// What to start, and with what.
struct ProcessPlan {
  std::vector<std::string> command;      // the program is looked up on PATH unless it holds a slash
  std::vector<std::string> environment;  // NAME=value
  bool reads_input = false;              // shares our standard input; otherwise it reads nothing
  int output = -1;                       // its standard output; -1: ours
  int error = -1;                        // its standard error; -1: ours
  int inherited = -1;                    // one more descriptor of ours that it gets under the same number; -1: none
};

// A child process in a session of its own, so that a signal to it reaches its children too, and Ctrl-C reaches only us.
// It is killed when we die, and when this object goes while it runs.
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
  Bytes peak_memory() const { return peak_memory_; }  // of the largest of it and its children; known after its end

  void signal_group(int signal) const;

  // Collects the status if the process has ended. True when it did so just now.
  bool reap();

  // Lets go of a process that even SIGKILL does not end.
  void abandon() { pid_ = 0; }

  // Waits for the end, without a limit.
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
