#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <functional>
#include <utility>

namespace tandem {

class Communicator;

// All-gathers a vector of statistics: one row per rank, in rank order.
using StatisticsGather = std::function<torch::Tensor(const torch::Tensor& statistics)>;

// What follows a batch norm.
enum class Activation { None, Relu, Silu };

// Batch normalization of (N, C), (N, C, L), (N, C, H, W), ... with the options, parameters and buffers of torch's
// BatchNorm1d, 2d and 3d, and bit-identical results. Inside `recompute` the running statistics are updated once.
//
// On a GPU, channels-last images whose channels are a multiple of 8 have kernels of our own, which include the
// activation and shortcut of `forward_with`: rounding then differs from torch's, and double backward is an Error.
//
// With a gather function it is torch's SyncBatchNorm: in training, statistics are computed over the batches of all
// ranks, which may differ in size or be empty. The gradients of weight and bias are this rank's share, to be reduced
// like all others. `forward` calls the function once; so does backward if the input requires grad. Double backward is
// then an Error.
//
// Training with fewer than two values per channel, over all ranks, is an Error.
class BatchNormImpl : public torch::nn::NormImplBase<0, BatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;

  torch::Tensor forward(const torch::Tensor& input) { return forward_with(input, Activation::None); }

  // activation(norm(input) + shortcut); `shortcut` has the shape of the input, or is undefined.
  torch::Tensor forward_with(const torch::Tensor& input, Activation activation, const torch::Tensor& shortcut = {});

  // nullptr: statistics of this rank only. A clone of the layer uses the same function.
  void set_gather(StatisticsGather gather) { gather_ = std::move(gather); }
  bool has_gather() const { return gather_ != nullptr; }

 private:
  void _check_input_dim(const torch::Tensor& input) override;
  torch::Tensor forward_alone(const torch::Tensor& input);
  torch::Tensor forward_joined(const torch::Tensor& input);
  torch::Tensor forward_fused(const torch::Tensor& input, Activation activation, const torch::Tensor& shortcut);
  bool fuses(const torch::Tensor& input, Activation activation, const torch::Tensor& shortcut) const;
  void track(const torch::Tensor& mean, const torch::Tensor& unbiased_var);
  bool is_tracking() const;
  double count_batch();

  StatisticsGather gather_;
};
TORCH_MODULE(BatchNorm);

// Synchronizes every tandem::BatchNorm in `module`: its statistics are computed over the batches of all ranks. Every
// rank calls it. A torch::nn::BatchNorm1d, 2d or 3d in the module is an Error that names it, and nothing is changed.
//
// The layers share a duplicate of `comm`, since their collectives and the buckets of DistributedDataParallel may be
// called in different orders on different ranks. It lives as long as any of the layers, or an autograd graph with one.
void convert_sync_batchnorm(torch::nn::Module& module, Communicator& comm);

}  // namespace tandem
