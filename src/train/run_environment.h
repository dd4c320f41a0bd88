#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/worker_env.h"

namespace tandem {

// Versions, machine, ranks and their devices, and the environment variables that change the behaviour of a run. Other
// variables are left out, since they may be secret.
Json run_environment(const WorkerEnv& env, const std::vector<std::string>& devices);

// Those of `variables` (NAME=value) that are recorded.
Json::Object telling_variables(std::vector<std::string> variables);

}  // namespace tandem
