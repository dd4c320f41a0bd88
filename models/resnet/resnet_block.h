#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <vector>

#include "models/resnet/conv.h"
#include "models/resnet/resnet_options.h"

namespace tandem {

// A residual block: conv1, bn1, conv2, bn2 (conv3, bn3) and, if the shape changes, downsample.0 and .1.
class ResnetBlockImpl : public torch::nn::Module {
 public:
  explicit ResnetBlockImpl(const BlockOptions& options);

  torch::Tensor forward(const torch::Tensor& x);

 private:
  void add(const ConvOptions& options);

  std::vector<Conv> convs_;
  std::vector<BatchNorm> norms_;
  ConvNorm downsample_{nullptr};
};
TORCH_MODULE(ResnetBlock);

}  // namespace tandem
