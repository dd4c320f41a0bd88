#pragma once

#include <functional>
#include <string>

namespace tandem {

// The command lines of the launcher and of the guard: other than that of the process that the user started, so that
// `pkill -f` of one of them does not reach the others.
inline constexpr const char* kLauncherTitle = "tandem-launcher";
inline constexpr const char* kGuardTitle = "tandem-guard";

// Changes what `ps` shows of this process.
void set_title(const char* title);

// Runs a job in such a way that none of its processes is left, whichever process of ours is killed or stopped. There
// are three:
//   - this process, which the user started. It passes signals on and ends as the launcher does. Here the function does
//     not return.
//   - the launcher, its child: here `job` runs, with the pid of its parent, and its result is returned.
//   - the guard, a process that knows the job's processes by the id of the run in their environment. It starts last.
// If the launcher dies, its parent kills all its descendants, and if the parent dies, the launcher does (it gets a
// SIGCONT then; see SignalQueue): as subreapers both see every descendant, whatever that has done to its environment.
// The guard acts when either is gone, in case the other cannot.
int run_guarded(const std::string& run_id, const std::function<int(int parent)>& job);

}  // namespace tandem
