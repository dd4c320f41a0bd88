#pragma once

#include "launch/jobs/detach.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"

namespace tandem {

// Starts the ranks of a plan and returns the exit code of the job when all its processes have ended: that of the rank
// that caused a failure, or 128 + signal. Reports on standard error and in the job's folder. Restarts failed ranks, all
// together and on the same port, as often as the options allow. `on_start` is called once the ranks run, with the job's
// name and the log file of a detached launcher. The job runs in a child process, which returns; this one does not.
int launch(const LaunchOptions& options, Dialect dialect, const LaunchPlan& plan, const OnStart& on_start = {});

}  // namespace tandem
