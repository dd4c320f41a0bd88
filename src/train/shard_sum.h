#pragma once

#include <torch/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ddp/reducer.h"
#include "train/tree_sum.h"

namespace tandem {

// What becomes of buffers, such as running statistics, from one micro-batch of a step to the next.
enum class Buffers {
  Continue,  // each micro-batch starts with what the one before left
  Restart,   // each starts with those of the beginning of the step, and what the first one leaves stays: exact mode
};

// Adds up the gradients of the micro-batches of a step along the tree of exact mode, of which this rank's are a
// subtree. Terms of the loss with different counts have sums of their own until the total counts are known.
class ShardSum {
 public:
  ShardSum(Reducer& reducer, Buffers buffers);

  // Around forward and backward of each micro-batch; `take` after the backward pass of the terms that share a count.
  void begin_shard();
  void take(std::size_t group);
  void end_shard();

  // Leaves the sum over the groups, each times its factor, and over all ranks in `.grad`.
  void reduce(std::span<const double> factors);

 private:
  using Tensors = std::vector<torch::Tensor>;
  static Tensors sum_of(Tensors left, Tensors right);
  using GradientTree = TreeSum<Tensors, decltype(&sum_of)>;

  Reducer& reducer_;
  Buffers buffers_;
  std::optional<NoSync> no_sync_;
  Tensors parameters_;
  std::vector<GradientTree> groups_;
  Tensors first_buffers_;  // before the first shard; with Restart
  Tensors next_buffers_;   // after it
};

}  // namespace tandem
