#pragma once

#include <string>
#include <vector>

#include "base/worker_env.h"
#include "launch/plan/options.h"

namespace tandem {

// Flags of `accelerate launch`, and keys of its file, that belong to something else than data parallelism.
std::vector<Refusal> beyond_data_parallelism();

struct SettledOptions {
  LaunchOptions options;
  std::vector<std::string> notes;  // one sentence each
};

// Takes from accelerate's file what no flag says, and puts accelerate's counts, addresses and devices into the groups
// that tandem itself reads. The file is the one that --config-file names or, for accelerate's own command line, its
// default file if that is there. A flag that contradicts tandem's own flag for the same thing is an Error.
SettledOptions settle_accelerate(LaunchOptions options, Dialect dialect, const Lookup& variable);

// The variables that `accelerate launch` itself sets, and that scripts which use Accelerate read.
Variables accelerate_variables(const AccelerateOptions& options, bool single_rank);

}  // namespace tandem
