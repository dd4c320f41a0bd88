#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace tandem::bench {

struct GptShape {
  std::int64_t vocabulary = 4096;
  std::int64_t length = 128;  // tokens of a sample
  std::int64_t layers = 4;
  std::int64_t width = 256;
  std::int64_t heads = 8;
};

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const GptShape& shape);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor attend(const torch::Tensor& x);

  std::int64_t heads_;
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear qkv_, projection_, up_, down_;
};
TORCH_MODULE(Block);

// GPT-2 without dropout. Weights depend on a seed only and are bit-identical to those of gpt_ddp.py.
class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const GptShape& shape);

  // The mean next-token loss of `tokens`, (samples, length + 1).
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding tokens_, places_;
  std::vector<Block> blocks_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(Gpt);

// The batch of a rank; it depends on the rank only.
torch::Tensor random_tokens(const GptShape& shape, std::int64_t samples, int rank);

}  // namespace tandem::bench
