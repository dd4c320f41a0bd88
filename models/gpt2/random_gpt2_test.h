#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>

#include "models/gpt2/gpt2.h"

namespace tandem {

inline constexpr Gpt2Options kTinyGpt2{
    .layers = 3, .heads = 4, .width = 64, .context = 24, .vocabulary = 50, .dropout = 0};

// Deterministic, with weights large enough that every part of the model affects the logits.
inline Gpt2 random_gpt2(const Gpt2Options& options = kTinyGpt2) {
  torch::set_num_threads(1);  // so little work gains nothing from threads
  torch::manual_seed(3);
  Gpt2 model(options);
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& parameter : model->parameters()) parameter.add_(torch::randn_like(parameter), 0.2);
  return model;
}

inline torch::Tensor random_ids(std::int64_t rows, std::int64_t length) {
  return torch::randint(kTinyGpt2.vocabulary, {rows, length}, torch::kLong);
}

}  // namespace tandem
