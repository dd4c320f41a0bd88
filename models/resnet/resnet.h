#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/resnet/conv.h"
#include "models/resnet/resnet_block.h"
#include "models/resnet/resnet_options.h"

namespace tandem {

struct ResnetFeatures {
  torch::Tensor low;   // of the first stage, stride 4
  torch::Tensor high;  // of the last stage
};

// The trunk of a ResNet, without the classifier. Parameters and buffers have the names of torchvision (and timm):
// conv1.weight, bn1.running_mean, layer1.0.conv1.weight, layer1.0.downsample.0.weight, ...
class ResnetImpl : public torch::nn::Module {
 public:
  explicit ResnetImpl(const ResnetOptions& options);

  ResnetFeatures forward(const torch::Tensor& images);

  std::int64_t low_channels() const { return low_channels_; }
  std::int64_t high_channels() const { return high_channels_; }

  // Activation checkpointing of the blocks.
  void set_recompute(bool wanted) { recompute_ = wanted; }

 private:
  using Stage = std::vector<ResnetBlock>;
  torch::Tensor run(Stage& stage, torch::Tensor x);

  bool is_ceil_;
  bool recompute_ = false;
  std::int64_t low_channels_ = 0;
  std::int64_t high_channels_ = 0;
  Conv conv1_{nullptr};
  BatchNorm bn1_{nullptr};
  std::vector<Stage> stages_;
};
TORCH_MODULE(Resnet);

}  // namespace tandem
