#pragma once

#include <functional>
#include <string>

#include "launch/ranks/event_loop.h"

namespace tandem {

// Collects children that have ended, up to the first that `is_ours`. We are the reaper of whatever the ranks start, so
// processes whose parents ended are our children too.
void reap_orphans(const std::function<bool(int pid)>& is_ours);

// Ends what the ranks of a run left behind once they are gone themselves: it may end by itself for a moment (a helper
// that cleans up), is asked to, and is killed. `say` is told whom that concerns. The guard is left alone.
void stop_leftovers(const std::string& run_id, int guard_pid, EventLoop& loop,
                    const std::function<void(const std::string& line)>& say);

}  // namespace tandem
