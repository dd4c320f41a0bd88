#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/gpt2/gpt2_block.h"
#include "models/gpt2/gpt2_options.h"
#include "models/gpt2/kv_cache.h"

namespace tandem {

// A target that asks for nothing, such as that of a prompt or of padding.
inline constexpr std::int64_t kNoTarget = -1;

struct TokenLoss {
  torch::Tensor sum;
  std::int64_t count = 0;  // of the targets that ask for something
};

// GPT-2. Token ids are (rows, length), of any integer type. Parameters have the published names
// (`h.0.attn.c_attn.weight`), matrices the shape (outputs, inputs); the head is the token embedding.
class Gpt2Impl : public torch::nn::Module {
 public:
  explicit Gpt2Impl(const Gpt2Options& options);

  // The cross entropy of `targets`, which has the shape of `ids`, added up over all but kNoTarget. Only where there is
  // a target are logits computed, and never all at once. Nothing waits for a GPU if the targets lie on the CPU.
  TokenLoss forward(const torch::Tensor& ids, const torch::Tensor& targets);

  // Of the token that follows each: (rows, length, vocabulary). A longer sequence than the context is an Error.
  torch::Tensor logits(const torch::Tensor& ids);

  // The same in two parts. What the head sees of each token is (rows, length, width); with a cache, the tokens follow
  // those in it.
  torch::Tensor hidden(const torch::Tensor& ids);
  torch::Tensor hidden(const torch::Tensor& ids, KvCache& cache);
  torch::Tensor head(const torch::Tensor& hidden) const;

  // Keep only the inputs of blocks and compute the rest again in the backward pass.
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
