#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/ranks/event_loop.h"

namespace tandem {

// A process that belongs to a run.
struct Straggler {
  int pid = 0;
  std::string command;
};

// The processes that carry the run's id in their environment (TANDEM_RUN_ID=ID, or ID/... for a job inside the job),
// whoever their parent is by now; without zombies, ourselves and `except`.
std::vector<Straggler> find_processes(const std::string& run_id, std::span<const int> except = {});

// Kills them until two sweeps in a row find none, since one may fork while we look, or until the limit. Returns how
// many were left: the kernel does not let go of a process that waits for a device. A process whose number was given to
// another in the meantime is never killed.
int kill_processes(const std::string& run_id, std::span<const int> except, Deadline limit);

// Collects children that have ended, up to the first that `is_ours`. We are the reaper of whatever the ranks start, so
// processes whose parents ended are our children too.
void reap_orphans(const std::function<bool(int pid)>& is_ours);

// Ends what the ranks of a run left behind once they are gone themselves: it may end by itself for a moment (a helper
// that cleans up), is asked to, and is killed. `say` is told whom that concerns. The guard is left alone.
void stop_leftovers(const std::string& run_id, int guard_pid, EventLoop& loop,
                    const std::function<void(const std::string& line)>& say);

}  // namespace tandem
