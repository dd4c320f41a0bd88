#pragma once

#include <string>
#include <vector>

#include "launch/plan/options.h"
#include "launch/plan/outer.h"

namespace tandem {

// The rank of this host among the hosts of the run, and the address of rank 0.
struct HostPlan {
  bool joins = false;  // this process is a task of the outer launcher and becomes one rank
  int node = 0;
  int num_nodes = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: a free port
  std::vector<std::string> notes = {};
};

// `outer` is used for tandem's own command line only: torchrun and accelerate ignore Slurm and MPI.
HostPlan plan_hosts(const LaunchOptions& options, Dialect dialect, const OuterJob& outer);

}  // namespace tandem
