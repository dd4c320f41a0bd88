#pragma once

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
};

// What to start, and with what.
struct ProcessPlan {
  std::vector<std::string> command;      // the program is looked up on PATH unless it holds a slash
  std::vector<std::string> environment;  // NAME=value
  bool reads_input = false;              // shares our standard input; otherwise it reads nothing
  int output = -1;                       // takes standard output and error; -1: shares ours
};

// A child process in a session of its own, so that a signal to it reaches its children too, and Ctrl-C reaches only us.
// It is killed when we die, and when this object goes while it runs.
class Process {
 public:
  Process(int pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)), status_(other.status_) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  int pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once the process has ended
  bool running() const { return pid_ > 0 && !status_; }
  const std::optional<ExitStatus>& status() const { return status_; }

  void signal_group(int signal) const;

  // Collects the status if the process has ended. True when it did so just now.
  bool reap();

  // Waits for the end, without a limit.
  ExitStatus wait();

 private:
  bool collect(int wait_options);

  int pid_;
  Fd pidfd_;
  std::optional<ExitStatus> status_;
};

// A program that cannot be executed is an Error of kind Launch.
Process spawn(const ProcessPlan& plan);

}  // namespace tandem
