#include "models/gpt2/gpt2_block.h"

#include <torch/nn/module.h>

#include <cmath>
#include <memory>
#include <utility>

#include "kernels/fast_linear.h"

namespace tandem {

using torch::Tensor;

WeightAndBiasImpl::WeightAndBiasImpl(Tensor initial_weight, bool has_bias)
    : weight(register_parameter("weight", std::move(initial_weight))) {
  if (has_bias) bias = register_parameter("bias", torch::zeros(weight.size(0)));
}

Tensor WeightAndBiasImpl::linear(const Tensor& x) const { return fast_linear(x, weight, bias); }

Tensor WeightAndBiasImpl::layer_norm(const Tensor& x) const {
  return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5);
}

Gpt2BlockImpl::Gpt2BlockImpl(const Gpt2Options& options, std::int64_t layer)
    : layer_(layer),
      heads_(options.heads),
      dropout_(options.dropout),
      gelu_(options.gelu == Gelu::Tanh ? "tanh" : "none") {
  const std::int64_t width = options.width;
  // Each layer adds two outputs to the residual stream; this keeps its variance independent of the number of layers.
  const double residual_std = kGpt2InitialStd / std::sqrt(2.0 * static_cast<double>(options.layers));
  const auto norm = [&] { return WeightAndBias(torch::ones(width), options.bias); };
  const auto matrix = [&](std::int64_t outputs, std::int64_t inputs, double std) {
    return WeightAndBias(torch::empty({outputs, inputs}).normal_(0, std), options.bias);
  };
  ln_1_ = register_module("ln_1", norm());
  const auto attention = register_module("attn", std::make_shared<torch::nn::Module>());
  qkv_ = attention->register_module("c_attn", matrix(3 * width, width, kGpt2InitialStd));
  projection_ = attention->register_module("c_proj", matrix(width, width, residual_std));
  ln_2_ = register_module("ln_2", norm());
  const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
  up_ = mlp->register_module("c_fc", matrix(4 * width, width, kGpt2InitialStd));
  down_ = mlp->register_module("c_proj", matrix(width, 4 * width, residual_std));
}

Tensor Gpt2BlockImpl::forward(const Tensor& x, KvCache* cache) {
  const Tensor y = x + drop(projection_->linear(attend(ln_1_->layer_norm(x), cache)));
  return y + drop(down_->linear(torch::gelu(up_->linear(ln_2_->layer_norm(y)), gelu_)));
}

Tensor Gpt2BlockImpl::attend(const Tensor& x, KvCache* cache) {
  const auto split = [&](const Tensor& part) { return part.unflatten(-1, {heads_, -1}).transpose(1, 2); };
  const auto parts = qkv_->linear(x).chunk(3, -1);
  const Tensor q = split(parts[0]), k = split(parts[1]), v = split(parts[2]);
  const Tensor y = cache != nullptr ? cache->attend(layer_, q, k, v)
                                    : at::scaled_dot_product_attention(q, k, v, {}, is_training() ? dropout_ : 0.0,
                                                                       /*is_causal=*/true);
  return y.transpose(1, 2).flatten(2);
}

Tensor Gpt2BlockImpl::drop(const Tensor& x) { return torch::dropout(x, dropout_, is_training()); }

}  // namespace tandem
