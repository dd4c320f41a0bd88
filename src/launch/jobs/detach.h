#pragma once

#include <functional>
#include <string>

namespace tandem {

// Runs `job` in a child process in a new session, so that it survives the terminal. `job` calls the function it is
// given once its ranks run, with its name and a log file for further output; errors before that appear on this
// terminal. Returns twice, like fork: in the parent with 0 after that call (and after `started(name)`), or with the
// job's exit code if it ended before; in the child with the job's exit code.
using OnStart = std::function<void(const std::string& name, const std::string& log)>;
int detach(const std::function<int(const OnStart&)>& job, const std::function<void(const std::string& name)>& started);

}  // namespace tandem
