#pragma once

#include <torch/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ddp/reducer.h"
#include "train/tree_sum.h"

namespace tandem {

// Buffers, such as running statistics, from one micro-batch of a step to the next.
enum class Buffers {
  Continue,  // each micro-batch starts with those after the previous one
  Restart,   // exact mode: each starts with those before the step; those after the first one are kept
};

// Sums the gradients of the micro-batches of a step along the tree of exact mode, in which those of this rank are a
// subtree. Loss terms with different counts are summed separately until the total counts are known.
class ShardSum {
 public:
  ShardSum(Reducer& reducer, Buffers buffers);

  // Around forward and backward of each micro-batch; `take` after the backward pass of the terms that share a count.
  void begin_shard();
  void take(std::size_t group);
  void end_shard();

  // Leaves in `.grad` the sum over all ranks and over the groups, each multiplied by its factor.
  void reduce(std::span<const double> factors);

 private:
  using Tensors = std::vector<torch::Tensor>;
  static Tensors sum_of(Tensors left, Tensors right);
  void set_gradients(const Tensors& gradients);
  Tensors sum_over_ranks(const Tensors& gradients);
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
