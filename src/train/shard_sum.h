#pragma once

#include <torch/types.h>

#include <optional>
#include <vector>

#include "ddp/reducer.h"
#include "train/tree_sum.h"

namespace tandem {

// Adds up the gradients of the shards of a step, as exact mode needs it: along the tree over all shards of the step,
// of which this rank's are a part. Every shard starts with the buffers of the step's beginning, and those that the
// first one leaves stay.
class ShardSum {
 public:
  explicit ShardSum(Reducer& reducer);

  // Around forward and backward of each shard.
  void begin_shard();
  void end_shard();

  // Leaves the sum over this rank's shards, and then over all ranks, in `.grad`.
  void reduce();

 private:
  using Tensors = std::vector<torch::Tensor>;
  static Tensors sum_of(Tensors left, Tensors right);

  Reducer& reducer_;
  std::optional<NoSync> no_sync_;
  Tensors parameters_;
  TreeSum<Tensors, decltype(&sum_of)> sum_{&sum_of};
  Tensors first_buffers_;  // before the first shard
  Tensors next_buffers_;   // after it
};

}  // namespace tandem
