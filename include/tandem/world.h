#pragma once

namespace tandem {

// The rank of this process and the size of the run. Without a launcher it is a world of one.
struct World {
  int rank = 0;  // 0 .. size-1, over all nodes
  int size = 1;
  int local_rank = 0;  // 0 .. local_size-1, on this node
  int local_size = 1;
  int node = 0;
  int num_nodes = 1;

  bool is_main() const { return rank == 0; }

  friend bool operator==(const World&, const World&) = default;
};

// Reads the environment set by a launcher (`tandem run`, torchrun, or RANK and WORLD_SIZE set by hand). An Error of
// kind Launch if the variables contradict each other.
World current_world();

}  // namespace tandem
