#include "models/deeplab/aspp.h"

#include <torch/nn/modules/container/modulelist.h>

#include <iterator>

namespace tandem {

using torch::Tensor;

AsppImpl::AsppImpl(const AsppOptions& o) {
  const auto list = register_module("convs", torch::nn::ModuleList());
  const auto add = [&](std::int64_t kernel, std::int64_t rate, int first_name) {
    const ConvOptions shape{.inputs = o.inputs, .outputs = o.outputs, .kernel = kernel, .dilation = rate};
    branches_.emplace_back(shape, ConvNormOptions{.first_name = first_name});
    list->push_back(branches_.back());
  };
  add(1, 1, 0);
  for (const std::int64_t rate : o.rates) add(3, rate, 0);
  add(1, 1, 1);  // in torchvision, the pooling is 0
  const ConvOptions shape{.inputs = std::ssize(branches_) * o.outputs, .outputs = o.outputs};
  project_ = register_module("project", ConvNorm(shape, ConvNormOptions{.has_relu = o.has_relu}));
}

Tensor AsppImpl::forward(const Tensor& x) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i + 1 < branches_.size(); ++i) parts.push_back(branches_[i](x));
  // Permuted, so that its gradient has the layout of the others.
  const Tensor pooled = x.permute({0, 2, 3, 1}).mean({1, 2}, /*keepdim=*/true).permute({0, 3, 1, 2});
  const Tensor mean = branches_.back()(pooled);
  // Expanded in the layout of the others, or the result would have another one.
  parts.push_back(mean.expand_as(parts.front()).contiguous(parts.front().suggest_memory_format()));
  return project_(torch::cat(parts, 1));
}

}  // namespace tandem
