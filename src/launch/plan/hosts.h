#pragma once

#include <string>
#include <vector>

#include "launch/plan/options.h"
#include "launch/plan/outer.h"

namespace tandem {

// The place of this host among the hosts of the run, and where they meet.
struct HostPlan {
  bool joins = false;  // this process is one task of the outer launcher, and becomes one rank
  int node = 0;
  int num_nodes = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: any free one
  std::vector<std::string> notes = {};
};

// `outer` counts for tandem's own command line only: the other tools take no notice of Slurm or MPI.
HostPlan plan_hosts(const LaunchOptions& options, Dialect dialect, const OuterJob& outer);

}  // namespace tandem
