#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/gpt2/generate.h"
#include "models/gpt2/gpt2.h"
#include "models/gpt2/kv_cache.h"

namespace tandem {

// Decodes a batch of prompts, one token at a time; at first one row per prompt.
class Continuation {
 public:
  Continuation(Gpt2& model, std::span<const Prompt> prompts, std::int64_t max_new_tokens);

  // Logits of the next token of each row: (rows, vocabulary), in float.
  const torch::Tensor& logits() const { return logits_; }

  // Continues with these rows, in this order, each extended by one token. A row may occur more than once.
  void append(std::span<const std::int64_t> rows, std::span<const std::int64_t> tokens);

 private:
  void compute(const torch::Tensor& ids);

  Gpt2& model_;
  torch::TensorOptions integers_;
  KvCache cache_;
  torch::Tensor logits_;
};

// Sets to -inf, in the logits (or log probabilities) of each row, the stop token before options.min_new_tokens and
// tokens that would repeat an n-gram. A row for which no token would be left is not restricted.
void forbid(const torch::Tensor& logits, std::span<const Tokens* const> texts, const GenerateOptions& options);

// Continues all prompts at once by beam search, as transformers does with early_stopping=False.
std::vector<Tokens> beam_search(Gpt2& model, std::span<const Prompt> prompts, const GenerateOptions& options);

}  // namespace tandem
