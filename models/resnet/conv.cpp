#include "models/resnet/conv.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tandem {

using torch::Tensor;

namespace {

// With `count` more rows of zeros.
Tensor with_zeros(const Tensor& rows, std::int64_t count) {
  if (count == 0 || !rows.defined()) return rows;
  std::vector<std::int64_t> sides(2 * rows.dim());  // of the last dimension first, before and behind
  sides.back() = count;
  return torch::constant_pad_nd(rows, sides);
}

// The products of weights and pixels of an input of that size, in one direction.
double products_along(std::int64_t size, const ConvOptions& o) {
  std::int64_t count = 0;
  for (std::int64_t centre = 0; centre < size; centre += o.stride) {
    for (std::int64_t k = 0; k < o.kernel; ++k) {
      const std::int64_t place = centre + (k - o.kernel / 2) * o.dilation;
      count += place >= 0 && place < size ? 1 : 0;
    }
  }
  return static_cast<double>(count);
}

}  // namespace

ConvImpl::ConvImpl(const ConvOptions& options) : options_(options) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(options.kernel * options.kernel * options.outputs));
  weight = register_parameter(
      "weight", torch::empty({options.outputs, options.inputs, options.kernel, options.kernel}).normal_(0, deviation));
  if (options.bias) bias = register_parameter("bias", torch::zeros(options.outputs));
}

Tensor ConvImpl::forward(const Tensor& x) {
  const bool is_centre = has_centre_alone(x);
  const Tensor used = is_centre ? weight.narrow(2, options_.kernel / 2, 1).narrow(3, options_.kernel / 2, 1) : weight;
  const std::int64_t padding = is_centre ? 0 : options_.dilation * (options_.kernel / 2);
  const std::int64_t dilation = prefers_onednn(x) ? 2 : is_centre ? 1 : options_.dilation;
  const std::int64_t missing = x.is_cuda() ? -options_.outputs & 7 : 0;  // tensor cores take multiples of 8
  Tensor y = torch::conv2d(x, with_zeros(used, missing), with_zeros(bias, missing), options_.stride, padding, dilation);
  last_sides_ = {x.size(2), x.size(3)};
  return missing == 0 ? y : y.narrow(1, 0, options_.outputs).contiguous(y.suggest_memory_format());
}

double ConvImpl::num_flops() const {
  const double products = products_along(last_sides_[0], options_) * products_along(last_sides_[1], options_);
  return 2 * products * static_cast<double>(options_.inputs * options_.outputs);
}

// Whether all weights but those in the centre meet only padding.
bool ConvImpl::has_centre_alone(const Tensor& x) const {
  return options_.kernel == 3 && options_.dilation >= std::max(x.size(2), x.size(3));
}

// On one thread, torch leaves a 1x1 convolution in float to MKL, which takes twice as long as oneDNN on processors of
// other makers than its own. It uses oneDNN for dilated convolutions; of a single pixel, the dilation means nothing.
bool ConvImpl::prefers_onednn(const Tensor& x) const {
  return options_.kernel == 1 && x.is_cpu() && x.scalar_type() == torch::kFloat && !__builtin_cpu_is("intel");
}

ConvNormImpl::ConvNormImpl(const ConvOptions& options, const ConvNormOptions& norm)
    : conv_(register_module(std::to_string(norm.first_name), Conv(options))),
      norm_(register_module(std::to_string(norm.first_name + 1), BatchNorm(options.outputs))),
      has_relu_(norm.has_relu) {}

Tensor ConvNormImpl::forward(const Tensor& x) {
  return norm_->forward_with(conv_(x), has_relu_ ? Activation::Relu : Activation::None);
}

double conv_flops(const torch::nn::Module& module) {
  double sum = 0;
  for (const auto& part : module.modules()) {
    if (const auto* conv = part->as<Conv>()) sum += conv->num_flops();
  }
  return sum;
}

void to_channels_last(torch::nn::Module& module) {
  for (Tensor& parameter : module.parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  }
}

}  // namespace tandem
