#pragma once

#include <tandem/batch_norm.h>
#include <torch/types.h>

namespace tandem {

// Batch normalization with what follows it in one kernel each way: activations are read and written half as often.

// Whether there are kernels for x: channels-last on a GPU, in float or 16 bits, the channels a multiple of 8.
bool can_fuse_norm(const torch::Tensor& x);

// What the values of a batch, or of all ranks' batches, are normalized with, in float.
struct BatchStatistics {
  torch::Tensor mean;     // (channels)
  torch::Tensor inv_std;  // (channels)
  torch::Tensor count;    // of values per channel
};

// Running statistics that a batch changes; undefined: none.
struct RunningStatistics {
  torch::Tensor mean = {};
  torch::Tensor var = {};
  double momentum = 0;
};
BatchStatistics batch_statistics(const torch::Tensor& x, double eps, const RunningStatistics& running);

// Mean and sum of squared deviations of each channel, and the number of values, in one vector.
torch::Tensor batch_moments(const torch::Tensor& x);

// activation(batch norm of x + shortcut). `weight`, `bias` and `shortcut` may be undefined. With `gather`, the
// statistics are those of all ranks, and the backward pass gathers, too.
struct NormParameters {
  torch::Tensor weight;
  torch::Tensor bias;
};
torch::Tensor fused_norm(const torch::Tensor& x, const torch::Tensor& shortcut, const NormParameters& parameters,
                         const BatchStatistics& statistics, Activation activation, const StatisticsGather& gather);

}  // namespace tandem
