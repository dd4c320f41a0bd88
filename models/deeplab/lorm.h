#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "models/deeplab/sum_and_count.h"
#include "models/resnet/conv.h"

namespace tandem {

// The localization rectification module: a training-only loss that pulls the features of foreground positions towards
// their average over similar positions, and those of the background towards 0.
class LormImpl : public torch::nn::Module {
 public:
  explicit LormImpl(std::int64_t channels);

  // `features` (batch, channels, height, width); `pseudo`: labels (batch, any height, any width), 255: none. The sum is
  // that of the squared differences of features and rectified features, the count that of those which are not 0.
  SumAndCount forward(const torch::Tensor& features, const torch::Tensor& pseudo);

 private:
  Conv query_{nullptr}, key_{nullptr};
  torch::Tensor gamma_;
};
TORCH_MODULE(Lorm);

}  // namespace tandem
