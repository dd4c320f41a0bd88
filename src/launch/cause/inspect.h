#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/jobs/job.h"

namespace tandem {

// What a rank is doing, as /proc tells it.
struct RankState {
  int rank = 0;
  int pid = 0;
  char state = 'X';        // of its main thread, as in proc(5); X: gone
  std::string state_text;  // "running", "sleeping", "waiting for disk", "stopped by a signal", ..., "gone"
  double cpu_seconds = 0;  // of it and all its descendants
  std::string
      wait_channel;         // where in the kernel its main thread waits; empty when it does not, or the kernel hides it
  std::string system_call;  // "futex", "read", ...; empty likewise
};

RankState inspect_rank(int rank, int pid);
std::vector<RankState> inspect_ranks(std::span<const RankProcess> ranks);  // with one look at the list of processes

// Where each rank that runs stands, as text: its state, the stacks of it and its children where they are Python and run
// our sitecustomize.py with that folder for stacks, else the system calls that their threads wait in. Ranks that stand
// in the same place are told together, and the odd one first. No answer is waited for longer than the deadline.
std::string collect_stacks(std::span<const RankProcess> ranks, const std::filesystem::path& stacks,
                           const Deadline& deadline);

}  // namespace tandem
