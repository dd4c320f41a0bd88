#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "launch/jobs/job.h"

namespace tandem {

// Where in the kernel a thread waits. Either is empty when it does not wait, or when the kernel does not tell us.
struct WaitPlace {
  std::string channel;      // a function of the kernel: "futex_do_wait"
  std::string system_call;  // "futex"

  std::string text() const;  // "futex (futex_do_wait)"; empty when nothing is known

  friend auto operator<=>(const WaitPlace&, const WaitPlace&) = default;
};

// Of the thread whose folder under /proc is given: /proc/PID or /proc/PID/task/TID.
WaitPlace read_wait_place(const std::filesystem::path& thread);

// "futex" for the text of /proc/PID/syscall; "system call 999" for a rare one; empty for a thread that runs.
std::string system_call_name(const std::string& text);

// What a rank is doing, as /proc tells it.
struct RankState {
  int rank = 0;
  int pid = 0;
  char state = 'X';        // of its main thread, as in proc(5); X: gone
  std::string state_text;  // "running", "sleeping", "waiting for disk", "stopped by a signal", ..., "gone"
  double cpu_seconds = 0;  // of it and all its descendants
  WaitPlace wait;          // of its main thread
};

RankState inspect_rank(int rank, int pid);
std::vector<RankState> inspect_ranks(std::span<const RankProcess> ranks);  // with one look at the list of processes

}  // namespace tandem
