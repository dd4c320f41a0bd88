#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "launch/jobs/job.h"

namespace tandem {

// Where in the kernel a thread waits. Both are empty if it does not wait, or if the kernel does not show it.
struct WaitPlace {
  std::string channel;      // kernel function: "futex_do_wait"
  std::string system_call;  // "futex"

  std::string text() const;  // "futex (futex_do_wait)"; empty if unknown

  friend auto operator<=>(const WaitPlace&, const WaitPlace&) = default;
};

// For the thread with this folder in /proc: /proc/PID or /proc/PID/task/TID.
WaitPlace read_wait_place(const std::filesystem::path& thread);

// "futex" for the content of /proc/PID/syscall; "system call 999" for an unlisted one; empty for a running thread.
std::string system_call_name(const std::string& text);

// The state of a rank, from /proc.
struct RankState {
  int rank = 0;
  int pid = 0;
  char state = 'X';        // of its main thread, as in proc(5); X: gone
  std::string state_text;  // "running", "sleeping", "waiting for disk", "stopped by a signal", ..., "gone"
  double cpu_seconds = 0;  // of the rank and its descendants
  WaitPlace wait;          // of its main thread

  std::string doing() const;  // "sleeping in futex (futex_do_wait)"
};

RankState inspect_rank(int rank, int pid);
std::vector<RankState> inspect_ranks(std::span<const RankProcess> ranks);  // reads the list of processes once

}  // namespace tandem
