#include "models/resnet/resnet.h"

#include <tandem/recompute.h>
#include <torch/nn/modules/container/modulelist.h>

#include <utility>

#include "base/text.h"

namespace tandem {

using torch::Tensor;

ResnetImpl::ResnetImpl(const ResnetOptions& options) : is_ceil_(options.stride_in == StrideIn::First) {
  validate(options);
  const auto shapes = resnet_stages(options);
  conv1_ = register_module("conv1", Conv(ConvOptions{.inputs = 3, .outputs = options.width, .kernel = 7, .stride = 2}));
  bn1_ = register_module("bn1", BatchNorm(options.width));
  for (std::size_t stage = 0; stage < shapes.size(); ++stage) {
    const auto list = register_module(str("layer", stage + 1), torch::nn::ModuleList());
    stages_.emplace_back();
    for (const BlockOptions& shape : shapes[stage]) {
      stages_.back().emplace_back(shape);
      list->push_back(stages_.back().back());
    }
  }
  low_channels_ = shapes.front().back().outputs();
  high_channels_ = shapes.back().back().outputs();
}

ResnetFeatures ResnetImpl::forward(const Tensor& images) {
  Tensor x = bn1_->forward_with(conv1_(images), Activation::Relu);
  x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1, /*dilation=*/1, is_ceil_);
  ResnetFeatures features;
  features.low = run(stages_[0], std::move(x));
  features.high = features.low;
  for (std::size_t stage = 1; stage < stages_.size(); ++stage) features.high = run(stages_[stage], features.high);
  return features;
}

Tensor ResnetImpl::run(Stage& stage, Tensor x) {
  for (ResnetBlock& block : stage) x = recompute_ ? recompute(block, x) : block(x);
  return x;
}

}  // namespace tandem
