#pragma once

#include <functional>
#include <string>

namespace tandem {

// Runs `job` in a process of its own session, which a closing terminal does not reach. `job` is given a function to
// call with its name and a file for what it says from then on; until then its errors appear here. Returns twice: here
// with 0 once the job has called it (`started` is then called with the name) or with the job's exit code if it ended
// before, and in the new process with the job's exit code.
using OnStart = std::function<void(const std::string& name, const std::string& log)>;
int detach(const std::function<int(const OnStart&)>& job, const std::function<void(const std::string& name)>& started);

}  // namespace tandem
