#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <functional>
#include <utility>

namespace tandem {

// Takes this rank's statistics, a vector, and returns those of all ranks, one row each, in the order of ranks.
using StatisticsGather = std::function<torch::Tensor(const torch::Tensor& statistics)>;

// Batch norm of (N, C), (N, C, L), (N, C, H, W), ... with the options, parameters and buffers of torch's layers, and
// the same results bit for bit; it takes the place of all three. Inside `recompute` its running statistics move once.
//
// With a gather function, training normalizes over the batches of all ranks: as one rank would with the joined batch,
// forward and backward, up to rounding. Ranks may have batches of different sizes, also empty ones. The gradients of
// weight and bias are this rank's share, to be summed like all others. Forward calls the function once; so does
// backward, where the input needs a gradient. A gradient of a gradient is an Error then.
//
// Fewer than two values per channel, over all ranks, are an Error in training.
class BatchNormImpl : public torch::nn::NormImplBase<0, BatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;

  torch::Tensor forward(const torch::Tensor& input);

  // Without one (nullptr), every rank is for itself. A clone of the layer uses the same function.
  void set_gather(StatisticsGather gather) { gather_ = std::move(gather); }
  bool has_gather() const { return gather_ != nullptr; }

 private:
  void _check_input_dim(const torch::Tensor& input) override;
  torch::Tensor forward_alone(const torch::Tensor& input);
  torch::Tensor forward_joined(const torch::Tensor& input);
  bool is_tracking() const;
  double count_batch();

  StatisticsGather gather_;
};
TORCH_MODULE(BatchNorm);

}  // namespace tandem
