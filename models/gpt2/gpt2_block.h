#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "models/gpt2/gpt2_options.h"
#include "models/gpt2/kv_cache.h"

namespace tandem {

// A weight and an optional bias, registered under these names.
class WeightAndBiasImpl : public torch::nn::Module {
 public:
  WeightAndBiasImpl(torch::Tensor initial_weight, bool has_bias);

  torch::Tensor linear(const torch::Tensor& x) const;
  torch::Tensor layer_norm(const torch::Tensor& x) const;

  torch::Tensor weight, bias;
};
TORCH_MODULE(WeightAndBias);

// A pre-norm transformer block, with the published parameter names.
class Gpt2BlockImpl : public torch::nn::Module {
 public:
  Gpt2BlockImpl(const Gpt2Options& options, std::int64_t layer);

  // With a cache, `x` holds the new tokens only.
  torch::Tensor forward(const torch::Tensor& x, KvCache* cache = nullptr);

 private:
  torch::Tensor attend(const torch::Tensor& x, KvCache* cache);
  torch::Tensor drop(const torch::Tensor& x);

  std::int64_t layer_;
  std::int64_t heads_;
  double dropout_;
  const char* gelu_;
  WeightAndBias ln_1_{nullptr}, ln_2_{nullptr};
  WeightAndBias qkv_{nullptr}, projection_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(Gpt2Block);

// Standard deviation of the published initialization.
inline constexpr double kGpt2InitialStd = 0.02;

}  // namespace tandem
