#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/gpt2/gpt2_options.h"

namespace tandem {

// The keys and values of the tokens so far, for incremental decoding of a batch. Shorter sequences are padded on the
// left; padding is masked out.
class KvCache {
 public:
  // `padding`: number of padding tokens of each row. Memory for `capacity` tokens per row, padding included, is
  // allocated at once. `tensors`: type and device of the weights.
  KvCache(const Gpt2Options& options, std::span<const std::int64_t> padding, std::int64_t capacity,
          const torch::TensorOptions& tensors);

  std::int64_t length() const { return length_; }

  // Starts `count` new tokens per row; an Error if they exceed the capacity or the context. Then `attend` must be
  // called once per layer.
  void extend(std::int64_t count);

  // Positions of the new tokens: (rows, count), or (1, count) if equal in all rows.
  torch::Tensor positions() const;

  // Appends the keys and values of the new tokens and returns their causal attention. All are (rows, heads, count, head
  // width).
  torch::Tensor attend(std::int64_t layer, const torch::Tensor& queries, const torch::Tensor& keys,
                       const torch::Tensor& values);

  // Keeps these rows, in this order; a row may occur more than once.
  void select(std::span<const std::int64_t> rows);

 private:
  struct Layer {
    torch::Tensor keys, values;  // (rows, heads, capacity, head width)
  };

  std::int64_t rows() const { return static_cast<std::int64_t>(padding_.size()); }
  bool has_padding() const;
  std::optional<torch::Tensor> make_mask() const;

  std::int64_t context_;
  std::int64_t capacity_;
  torch::TensorOptions tensors_;
  std::vector<std::int64_t> padding_;
  std::vector<Layer> layers_;
  std::int64_t begin_ = 0;             // first new token
  std::int64_t length_ = 0;            // number of tokens, new ones included
  bool is_first_ = false;              // the new tokens are the first ones, without padding
  std::optional<torch::Tensor> mask_;  // attention mask, if needed
};

}  // namespace tandem
