#include "models/resnet/resnet_block.h"

#include "base/text.h"

namespace tandem {

using torch::Tensor;

ResnetBlockImpl::ResnetBlockImpl(const BlockOptions& o) {
  const bool is_first = o.stride_in == StrideIn::First;
  if (o.is_bottleneck) {
    add({.inputs = o.inputs, .outputs = o.width, .stride = is_first ? o.stride : 1});
    add({.inputs = o.width,
         .outputs = o.width,
         .kernel = 3,
         .stride = is_first ? 1 : o.stride,
         .dilation = o.dilation});
    add({.inputs = o.width, .outputs = o.outputs()});
  } else {
    // Only the second convolution is dilated.
    add({.inputs = o.inputs, .outputs = o.width, .kernel = 3, .stride = o.stride});
    add({.inputs = o.width, .outputs = o.width, .kernel = 3, .dilation = o.dilation});
  }
  if (o.stride != 1 || o.inputs != o.outputs()) {
    const ConvOptions shape{.inputs = o.inputs, .outputs = o.outputs(), .stride = o.stride};
    downsample_ = register_module("downsample", ConvNorm(shape, ConvNormOptions{.has_relu = false}));
  }
}

void ResnetBlockImpl::add(const ConvOptions& options) {
  const std::size_t number = convs_.size() + 1;
  convs_.emplace_back(register_module(str("conv", number), Conv(options)));
  norms_.emplace_back(register_module(str("bn", number), BatchNorm(options.outputs)));
}

Tensor ResnetBlockImpl::forward(const Tensor& x) {
  const Tensor shortcut = downsample_ ? downsample_(x) : x;
  Tensor y = x;
  for (std::size_t i = 0; i + 1 < convs_.size(); ++i) y = norms_[i]->forward_with(convs_[i](y), Activation::Relu);
  return norms_.back()->forward_with(convs_.back()(y), Activation::Relu, shortcut);
}

}  // namespace tandem
