#pragma once

#include <tandem/units.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/cause/cause.h"

namespace tandem {

// The state of the machine and the run at the time of a failure.
struct Circumstances {
  bool killed_for_memory = false;     // the OOM-kill counter of our cgroup has increased
  std::optional<Bytes> memory_limit;  // of that cgroup
  std::optional<Bytes> shm_free, shm_total;
  bool notebook = false;
  bool kaggle = false;
  int local_ranks = 1;
  int visible_gpus = 0;
  std::vector<int> rank_pids;  // of this run
  std::string program;         // for command lines in hints
};

// What to do about the failure of the rank that caused it, in short lines. Empty if nothing is known, or if the worker
// has printed a hint of its own.
std::string failure_hint(const RankEnd& end, const Evidence& evidence, const Circumstances& now);

}  // namespace tandem
