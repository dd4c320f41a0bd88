#pragma once

#include <string>

#include "base/json.h"
#include "launch/jobs/detach.h"
#include "launch/plan/options.h"
#include "launch/plan/plan.h"

namespace tandem {

// How a job ended.
struct LaunchResult {
  int exit_code = 0;    // of the rank that is to blame; 128 + signal where one ended it
  std::string outcome;  // succeeded, failed, stopped, stalled
  Json json;            // for machines
};

// Starts the ranks of a plan and returns when the last process of them is gone. What happens is told on standard error
// and recorded in the job's folder. A failed group is started again as often as the options allow, on the same port.
// `on_start` is called once the first ranks run, with the job's name and the file for what a detached launcher says.
LaunchResult launch(const LaunchOptions& options, Dialect dialect, const LaunchPlan& wanted,
                    const OnStart& on_start = {});

}  // namespace tandem
