#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/gpt2/generate.h"
#include "models/gpt2/gpt2.h"
#include "models/gpt2/kv_cache.h"

namespace tandem {

// Prompts that grow together, a token at a time; one row each at first.
class Continuation {
 public:
  Continuation(Gpt2& model, std::span<const Prompt> prompts, std::int64_t max_new_tokens);

  // Of the next token of each row: (rows, vocabulary), in float.
  const torch::Tensor& logits() const { return logits_; }

  // Goes on with these rows, in this order, each with one more token. A row may be named more than once.
  void append(std::span<const std::int64_t> rows, std::span<const std::int64_t> tokens);

 private:
  void compute(const torch::Tensor& ids);

  Gpt2& model_;
  torch::TensorOptions integers_;
  KvCache cache_;
  torch::Tensor logits_;
};

// Makes impossible in the logits (or log probabilities) of each row what may not follow its new tokens: an end before
// options.min_new_tokens, and a repetition. A row for which nothing would be left may go on with anything.
void forbid(const torch::Tensor& logits, std::span<const Tokens* const> texts, const GenerateOptions& options);

// Continues all prompts at once by beam search, as transformers does with early_stopping=False.
std::vector<Tokens> beam_search(Gpt2& model, std::span<const Prompt> prompts, const GenerateOptions& options);

}  // namespace tandem
