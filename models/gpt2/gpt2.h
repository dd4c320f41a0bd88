#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/gpt2/gpt2_block.h"
#include "models/gpt2/gpt2_options.h"
#include "models/gpt2/kv_cache.h"

namespace tandem {

// The ignore index of targets: prompt tokens and padding.
inline constexpr std::int64_t kNoTarget = -1;

struct TokenLoss {
  torch::Tensor sum;
  std::int64_t count = 0;  // of the targets that are not ignored
};

// GPT-2. Token ids are (rows, length), of any integer type. Parameters have the published names
// (`h.0.attn.c_attn.weight`), matrices the shape (outputs, inputs); the head is the token embedding.
class Gpt2Impl : public torch::nn::Module {
 public:
  explicit Gpt2Impl(const Gpt2Options& options);

  // The sum of the cross entropy over `targets`, which has the shape of `ids`; kNoTarget is ignored. Logits are
  // computed for positions with a target only, in chunks. With targets on the CPU, the host does not wait for a GPU.
  TokenLoss forward(const torch::Tensor& ids, const torch::Tensor& targets);

  // Logits of the next token at each position: (rows, length, vocabulary). A sequence longer than the context is an
  // Error.
  torch::Tensor logits(const torch::Tensor& ids);

  // The same in two parts: final hidden states (rows, length, width), then the head. With a cache, `ids` continues the
  // cached tokens.
  torch::Tensor hidden(const torch::Tensor& ids);
  torch::Tensor hidden(const torch::Tensor& ids, KvCache& cache);
  torch::Tensor head(const torch::Tensor& hidden) const;

  // Activation checkpointing of the blocks.
  void set_recompute(bool wanted) { recompute_ = wanted; }

  const Gpt2Options& options() const { return options_; }

 private:
  torch::Tensor embed(const torch::Tensor& ids, const torch::Tensor& positions);

  Gpt2Options options_;
  bool recompute_ = false;
  WeightAndBias tokens_{nullptr}, positions_{nullptr}, norm_{nullptr};
  std::vector<Gpt2Block> blocks_;
};
TORCH_MODULE(Gpt2);

}  // namespace tandem
