#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/worker_env.h"

namespace tandem {

// What a run ran with: versions, machine, ranks and their devices, and the variables that change what it does. Other
// variables are left out, since they may be secret.
Json run_environment(const WorkerEnv& env, const std::vector<std::string>& devices);

// Of texts NAME=value those that belong there.
Json::Object telling_variables(std::vector<std::string> variables);

}  // namespace tandem
