#pragma once

#include <string>

#include "base/worker_env.h"

namespace tandem {

// The job of an outer launcher (Slurm, MPI, torchrun) in which this process is one task.
struct OuterJob {
  std::string launcher;  // "Slurm", "Open MPI", "MPI", "torchrun"; empty: no outer launcher
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
  int num_nodes = 1;
  std::string master_addr = {};  // empty: not provided, so the user must set it
  int master_port = 0;           // the same in every task of a job

  bool one_task_per_node() const { return local_size == 1; }

  friend bool operator==(const OuterJob&, const OuterJob&) = default;
};

// Reads rank and size of the task from the variables of torchrun, MPI (which may itself run in a Slurm step) or a Slurm
// step. Inside a rank of `tandem run` there is no outer job: a nested run is independent. Invalid numbers are an Error
// of kind Launch.
OuterJob read_outer_job(const Lookup& lookup);

}  // namespace tandem
