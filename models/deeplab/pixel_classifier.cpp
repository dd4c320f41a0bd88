#include "models/deeplab/pixel_classifier.h"

#include <torch/nn/modules/container/modulelist.h>

#include "models/deeplab/resize_map.h"

namespace tandem {

using torch::Tensor;

PixelClassifierImpl::PixelClassifierImpl(const DeeplabOptions& o, const ResnetImpl& trunk)
    : kind_(o.head), dropout_(o.dropout) {
  const std::int64_t inputs = trunk.high_channels();
  switch (o.head) {
    case SegmentHead::AsppToClasses:
      aspp_ = register_module("0", Aspp(AsppOptions{.inputs = inputs, .outputs = o.classes}));
      break;
    case SegmentHead::DeeplabV3: add_v3(o, inputs); break;
    case SegmentHead::DeeplabV3Plus: add_v3_plus(o, trunk); break;
    case SegmentHead::DilatedSum: add_dilated_sum(o, inputs); break;
  }
}

void PixelClassifierImpl::add_v3(const DeeplabOptions& o, std::int64_t inputs) {
  const std::int64_t channels = 4 * o.trunk.width;
  const AsppOptions shape{.inputs = inputs, .outputs = channels, .rates = {12, 24, 36}, .has_relu = true};
  aspp_ = register_module("0", Aspp(shape));
  conv_ = register_module("1", Conv(ConvOptions{.inputs = channels, .outputs = channels, .kernel = 3}));
  norm_ = register_module("2", BatchNorm(channels));
  last_ = register_module("4", Conv(ConvOptions{.inputs = channels, .outputs = o.classes, .bias = true}));
}

void PixelClassifierImpl::add_v3_plus(const DeeplabOptions& o, const ResnetImpl& trunk) {
  const std::int64_t channels = 4 * o.trunk.width;
  const std::int64_t low = 3 * o.trunk.width / 4;
  const AsppOptions shape{.inputs = trunk.high_channels(), .outputs = channels, .rates = {6, 12, 18}, .has_relu = true};
  aspp_ = register_module("0", Aspp(shape));
  low_ = register_module("low", ConvNorm(ConvOptions{.inputs = trunk.low_channels(), .outputs = low}));
  first_ = register_module("first", ConvNorm(ConvOptions{.inputs = low + channels, .outputs = channels, .kernel = 3}));
  second_ = register_module("second", ConvNorm(ConvOptions{.inputs = channels, .outputs = channels, .kernel = 3}));
  last_ = register_module("last", Conv(ConvOptions{.inputs = channels, .outputs = o.classes, .bias = true}));
}

void PixelClassifierImpl::add_dilated_sum(const DeeplabOptions& o, std::int64_t inputs) {
  const auto list = register_module("convs", torch::nn::ModuleList());
  for (const std::int64_t rate : {6, 12, 18, 24}) {
    sum_.emplace_back(ConvOptions{.inputs = inputs, .outputs = o.classes, .kernel = 3, .dilation = rate, .bias = true});
    list->push_back(sum_.back());
  }
}

Tensor PixelClassifierImpl::forward(const ResnetFeatures& features) {
  switch (kind_) {
    case SegmentHead::DeeplabV3: return forward_v3(features.high);
    case SegmentHead::DeeplabV3Plus: return forward_v3_plus(features);
    case SegmentHead::DilatedSum: return forward_dilated_sum(features.high);
    case SegmentHead::AsppToClasses: break;
  }
  return aspp_(features.high);
}

Tensor PixelClassifierImpl::forward_v3(const Tensor& features) {
  const Tensor x = torch::dropout(aspp_(features), dropout_, is_training());
  return last_(norm_->forward_with(conv_(x), Activation::Relu));
}

Tensor PixelClassifierImpl::forward_v3_plus(const ResnetFeatures& features) {
  const Tensor high = torch::dropout(aspp_(features.high), dropout_, is_training());
  const Tensor both = torch::cat({low_(features.low), resized_like(high, features.low, /*align_corners=*/true)}, 1);
  return last_(second_(first_(both)));
}

Tensor PixelClassifierImpl::forward_dilated_sum(const Tensor& features) {
  Tensor sum = sum_.front()(features);
  for (std::size_t i = 1; i < sum_.size(); ++i) sum = sum + sum_[i](features);
  return sum;
}

}  // namespace tandem
