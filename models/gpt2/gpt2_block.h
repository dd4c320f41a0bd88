#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "models/gpt2/gpt2_options.h"
#include "models/gpt2/kv_cache.h"

namespace tandem {

// A weight and, perhaps, a bias, under these names.
class WeightAndBiasImpl : public torch::nn::Module {
 public:
  WeightAndBiasImpl(torch::Tensor initial_weight, bool has_bias);

  torch::Tensor linear(const torch::Tensor& x) const;
  torch::Tensor layer_norm(const torch::Tensor& x) const;

  torch::Tensor weight, bias;
};
TORCH_MODULE(WeightAndBias);

// Attention and MLP, each with a norm before it. The names of the parameters are the published ones.
class Gpt2BlockImpl : public torch::nn::Module {
 public:
  Gpt2BlockImpl(const Gpt2Options& options, std::int64_t layer);

  // With a cache, `x` holds new tokens only.
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

// How wide the published weights lie at first.
inline constexpr double kGpt2InitialStd = 0.02;

}  // namespace tandem
