#pragma once

#include <string>
#include <vector>

#include "base/worker_env.h"
#include "launch/plan/options.h"

namespace tandem {

// Flags of `accelerate launch`, and keys of its config file, for anything but data parallelism.
std::vector<Refusal> beyond_data_parallelism();

struct SettledOptions {
  LaunchOptions options;
  std::vector<std::string> notes;  // one sentence each
};

// Fills settings that no flag sets from accelerate's config file, and copies accelerate's counts, addresses and devices
// to the groups that tandem reads. The file is that of --config-file or, on accelerate's own command line, its default
// file if it exists. A flag that contradicts tandem's flag for the same thing is an Error.
SettledOptions settle_accelerate(LaunchOptions options, Dialect dialect, const Lookup& variable);

// The environment variables that `accelerate launch` sets for scripts that use Accelerate.
Variables accelerate_variables(const AccelerateOptions& options, bool single_rank);

}  // namespace tandem
