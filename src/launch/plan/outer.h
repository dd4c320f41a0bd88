#pragma once

#include <string>

#include "base/worker_env.h"

namespace tandem {

// The job of another launcher, in which we are one task of many.
struct OuterJob {
  std::string launcher;  // "Slurm", "Open MPI", "MPI", "torchrun"; empty: nobody started us
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int node = 0;
  int num_nodes = 1;
  std::string master_addr = {};  // empty: the launcher does not tell, so the user must
  int master_port = 0;           // every task of a job gets the same one

  bool one_task_per_node() const { return local_size == 1; }

  friend bool operator==(const OuterJob&, const OuterJob&) = default;
};

// Reads the task's place from the variables of torchrun, MPI (whose own launcher may be a Slurm step) or a Slurm step.
// A rank that `tandem run` started and that starts it again is nobody's task. Numbers that make no sense are an Error
// of kind Launch.
OuterJob read_outer_job(const Lookup& lookup);

}  // namespace tandem
