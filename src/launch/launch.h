#pragma once

#include <string>

#include "base/json.h"
#include "launch/jobs/detach.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"

namespace tandem {

// How a job ended.
struct LaunchResult {
  int exit_code = 0;    // of the rank that caused a failure; 128 + signal if a signal ended it
  std::string outcome;  // succeeded, failed, stopped, stalled
  Json json;            // the result for --json
};

// Starts the ranks of a plan and returns when all their processes have ended. Reports on standard error and in the
// job's folder. Restarts failed ranks, all together and on the same port, as often as the options allow. `on_start` is
// called once the ranks run, with the job's name and the log file of a detached launcher.
LaunchResult launch(const LaunchOptions& options, Dialect dialect, const LaunchPlan& wanted,
                    const OnStart& on_start = {});

}  // namespace tandem
