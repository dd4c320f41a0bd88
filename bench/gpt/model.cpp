#include "gpt/model.h"

#include <torch/nn/functional/loss.h>

namespace tandem::bench {

using torch::indexing::None;
using torch::indexing::Slice;

BlockImpl::BlockImpl(const GptShape& shape)
    : heads_(shape.heads),
      norm1_(register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})))),
      norm2_(register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})))),
      qkv_(register_module("qkv", torch::nn::Linear(shape.width, 3 * shape.width))),
      projection_(register_module("projection", torch::nn::Linear(shape.width, shape.width))),
      up_(register_module("up", torch::nn::Linear(shape.width, 4 * shape.width))),
      down_(register_module("down", torch::nn::Linear(4 * shape.width, shape.width))) {}

torch::Tensor BlockImpl::forward(const torch::Tensor& x) {
  const torch::Tensor y = x + attend(norm1_(x));
  return y + down_(torch::gelu(up_(norm2_(y)), "tanh"));
}

torch::Tensor BlockImpl::attend(const torch::Tensor& x) {
  const auto split = [&](const torch::Tensor& part) { return part.unflatten(-1, {heads_, -1}).transpose(1, 2); };
  const auto parts = qkv_(x).chunk(3, -1);
  const torch::Tensor y =
      at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]), {}, 0.0, true);
  return projection_(y.transpose(1, 2).flatten(2));
}

GptImpl::GptImpl(const GptShape& shape)
    : tokens_(register_module("tokens", torch::nn::Embedding(shape.vocabulary, shape.width))),
      places_(register_module("places", torch::nn::Embedding(shape.length, shape.width))),
      norm_(torch::nn::LayerNormOptions({shape.width})) {
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    blocks_.push_back(register_module("block" + std::to_string(i), Block(shape)));
  }
  register_module("norm", norm_);

  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  for (const auto& parameter : named_parameters()) {
    torch::Tensor value = parameter.value();
    if (value.dim() > 1) {
      value.normal_(0, 0.02);
    } else if (parameter.key().ends_with("bias")) {
      value.zero_();
    }
  }
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens) {
  const torch::Tensor input = tokens.index({Slice(), Slice(None, -1)});
  const torch::Tensor target = tokens.index({Slice(), Slice(1, None)});
  torch::Tensor x = tokens_(input) + places_->weight;
  for (Block& block : blocks_) x = block(x);
  const torch::Tensor logits = torch::linear(norm_(x), tokens_->weight);
  return torch::nn::functional::cross_entropy(logits.flatten(0, 1), target.flatten());
}

torch::Tensor random_tokens(const GptShape& shape, std::int64_t samples, int rank) {
  const auto generator = torch::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 + rank));
  return torch::randint(0, shape.vocabulary, {samples, shape.length + 1}, generator, torch::kLong);
}

}  // namespace tandem::bench
