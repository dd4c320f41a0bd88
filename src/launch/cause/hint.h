#pragma once

#include <tandem/units.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/cause/cause.h"

namespace tandem {

// What the launcher knows about the machine and the run at the moment of a failure.
struct Circumstances {
  bool killed_for_memory = false;     // the kernel's counter of memory kills in our cgroup went up
  std::optional<Bytes> memory_limit;  // of that cgroup
  std::optional<Bytes> shm_free, shm_total;
  bool notebook = false;
  bool kaggle = false;
  int local_ranks = 1;
  int visible_gpus = 0;
  std::vector<int> rank_pids;  // of this run
  std::string program;         // for command lines in hints
};

// What to do about the failure of the rank that is its cause: lines that fit a terminal, the first one the gist. Empty:
// nothing to say, or the worker has said it.
std::string failure_hint(const RankEnd& end, const Evidence& evidence, const Circumstances& now);

}  // namespace tandem
