#include "models/deeplab/lorm.h"

#include <torch/nn/init.h>

#include <array>

#include "models/deeplab/rectify.h"
#include "models/deeplab/soft_target.h"

namespace tandem {
namespace {

using torch::Tensor;

// Whether the label, resized bilinearly, is above 0: (batch, positions).
Tensor foreground(const Tensor& pseudo, const Tensor& features) {
  const Tensor known = pseudo.masked_fill(pseudo == kUnlabelled, 0).unsqueeze(1).to(torch::kFloat);
  return at::upsample_bilinear2d(known, features.sizes().slice(2), /*align_corners=*/true).flatten(1) > 0;
}

// The 1x1 convolution of positions (count, channels). Their number changes from batch to batch, for which cuDNN would
// choose an algorithm each time; on a CPU, a convolution is faster than a product of matrices.
Tensor projected(Conv& conv, const Tensor& positions) {
  if (!positions.is_cpu() || positions.size(0) == 0) return at::linear(positions, conv->weight.flatten(1), conv->bias);
  const Tensor map = positions.t().unsqueeze(0).unsqueeze(3);  // (1, channels, count, 1), channels-last
  return conv(map).squeeze(3).squeeze(0).t();
}

}  // namespace

LormImpl::LormImpl(std::int64_t channels) {
  const ConvOptions shape{.inputs = channels, .outputs = channels, .bias = true};
  query_ = register_module("query", Conv(shape));
  key_ = register_module("key", Conv(shape));
  for (const Conv& conv : {query_, key_}) torch::nn::init::xavier_uniform_(conv->weight);
  gamma_ = register_parameter("gamma", torch::ones(1));
}

SumAndCount LormImpl::forward(const Tensor& features, const Tensor& pseudo) {
  const Tensor x = features.permute({0, 2, 3, 1}).flatten(0, 2);  // (batch * positions, channels)
  // Rectified features of the background are 0, so only the foreground needs queries.
  const Tensor is_foreground = foreground(pseudo, features);
  const Tensor counts = is_foreground.sum(1).cpu();
  const Tensor rows = is_foreground.flatten().nonzero().flatten();
  const auto* first = counts.const_data_ptr<std::int64_t>();
  const std::array<std::int64_t, 3> shape = {features.size(0), features.size(2) * features.size(3), features.size(1)};
  return rectification({.features = x.view(shape),
                        .query = projected(query_, x.index_select(0, rows)),
                        .key = projected(key_, x).view(shape),
                        .gamma = gamma_,
                        .rows = rows,
                        .counts = {first, first + counts.numel()}});
}

}  // namespace tandem
