#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <array>
#include <cstdint>
#include <vector>

#include "models/resnet/conv.h"

namespace tandem {

struct AsppOptions {
  std::int64_t inputs = 0;   // channels
  std::int64_t outputs = 0;  // channels of every branch, and of the whole
  std::array<std::int64_t, 3> rates = {12, 18, 24};
  bool has_relu = false;  // after the last batch norm
};

// Atrous spatial pyramid pooling: a 1x1 convolution, three dilated 3x3 ones and the mean of the image side by side,
// then a 1x1 convolution; all with batch norm. Names as in torchvision: convs.0.0.weight, convs.4.1.weight,
// project.0.weight.
class AsppImpl : public torch::nn::Module {
 public:
  explicit AsppImpl(const AsppOptions& options);

  torch::Tensor forward(const torch::Tensor& x);

 private:
  std::vector<ConvNorm> branches_;  // the last is that of the mean
  ConvNorm project_{nullptr};
};
TORCH_MODULE(Aspp);

}  // namespace tandem
