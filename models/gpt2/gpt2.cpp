#include "models/gpt2/gpt2.h"

#include <tandem/error.h>
#include <tandem/recompute.h>
#include <torch/nn/modules/container/modulelist.h>

#include "base/text.h"
#include "kernels/linear_cross_entropy.h"

namespace tandem {

using torch::Tensor;

Gpt2Impl::Gpt2Impl(const Gpt2Options& options) : options_(options) {
  validate(options);
  const auto table = [&](std::int64_t rows) {
    return WeightAndBias(torch::empty({rows, options.width}).normal_(0, kGpt2InitialStd), false);
  };
  tokens_ = register_module("wte", table(options.vocabulary));
  positions_ = register_module("wpe", table(options.context));
  const auto blocks = register_module("h", torch::nn::ModuleList());
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    blocks_.emplace_back(options, layer);
    blocks->push_back(blocks_.back());
  }
  norm_ = register_module("ln_f", WeightAndBias(torch::ones(options.width), options.bias));
}

TokenLoss Gpt2Impl::forward(const Tensor& ids, const Tensor& targets) {
  const Tensor flat = targets.flatten();
  const Tensor wanted = (flat != kNoTarget).nonzero().squeeze(1);
  // Before any GPU work is queued: a copy from the CPU waits for it.
  const Tensor places = wanted.to(ids.device());
  const Tensor chosen = flat.index_select(0, wanted).to(ids.device());
  const Tensor states = hidden(ids).flatten(0, 1).index_select(0, places);
  return {linear_cross_entropy(states, tokens_->weight, chosen), wanted.numel()};
}

Tensor Gpt2Impl::logits(const Tensor& ids) { return head(hidden(ids)); }

Tensor Gpt2Impl::hidden(const Tensor& ids) {
  const std::int64_t length = ids.size(1);
  if (length > options_.context) {
    fail(ErrorKind::Data, str("gpt2: a sequence of ", length, " tokens exceeds the context of ", options_.context),
         "truncate the sequence, or use a model with a longer context");
  }
  Tensor x = embed(ids, torch::arange(length, ids.options().dtype(torch::kLong)));
  for (Gpt2Block& block : blocks_) x = recompute_ ? recompute(block, x) : block(x);
  return norm_->layer_norm(x);
}

Tensor Gpt2Impl::hidden(const Tensor& ids, KvCache& cache) {
  cache.extend(ids.size(1));
  Tensor x = embed(ids, cache.positions());
  for (Gpt2Block& block : blocks_) x = block->forward(x, &cache);
  return norm_->layer_norm(x);
}

Tensor Gpt2Impl::head(const Tensor& hidden) const { return tokens_->linear(hidden); }

Tensor Gpt2Impl::embed(const Tensor& ids, const Tensor& positions) {
  const Tensor x = torch::embedding(tokens_->weight, ids) + torch::embedding(positions_->weight, positions);
  return torch::dropout(x, options_.dropout, is_training());
}

}  // namespace tandem
