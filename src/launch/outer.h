#pragma once

#include <string>

namespace tandem {

// The job of another launcher that this process is one task of.
struct OuterJob {
  std::string launcher;  // "Slurm", "Open MPI", "MPI", "torchrun"; empty: there is none
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
  int num_nodes = 1;
  std::string master_addr;
  int master_port = 0;

  bool one_task_per_node() const { return local_size == 1; }
};

}  // namespace tandem
