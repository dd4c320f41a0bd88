#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/ranks/event_loop.h"

namespace tandem {

// A process that belongs to a run.
struct RunProcess {
  int pid = 0;
  std::string command;
};

// The processes with the run's id in their environment (TANDEM_RUN_ID=ID, or ID/... for a nested run), whatever their
// parent is now; without zombies and this process. None if /proc is not ours.
std::vector<RunProcess> find_processes(const std::string& run_id);

// Kills these processes until two sweeps in a row find none (one may fork during a sweep) or the limit is reached.
// Returns how many are left: a process in uninterruptible sleep cannot be killed. A pid that was reused in the meantime
// is never killed.
int kill_processes(const std::string& run_id, Deadline limit);

// Reaps children that have ended, up to the first for which `is_ours` is true. The launcher is the subreaper of all
// processes that the ranks start, so orphans become its children.
void reap_orphans(const std::function<bool(int pid)>& is_ours);

// Kills all descendants of this process, whatever they have done to their environment: children of killed processes
// become ours, as we are their subreaper. Returns when none is left or the limit is reached. Our children `except` are
// spared.
void kill_descendants(std::span<const int> except, Deadline limit);

// What the ranks of a run may leave behind.
struct Leftovers {
  std::string run_id;
  std::vector<int> groups;  // the pids of the ranks, which lead process groups
};

// Stops processes that the ranks of a run leave behind: after a short time to finish by themselves (cleanup helpers),
// they get SIGTERM and then SIGKILL, which comes at once when `in_a_hurry` is true. `say` is called with a message that
// names them. If /proc is not ours, only the process groups of the ranks are known, and stopped.
void stop_leftovers(const Leftovers& leftovers, EventLoop& loop, const std::function<bool()>& in_a_hurry,
                    const std::function<void(const std::string& line)>& say);

}  // namespace tandem
