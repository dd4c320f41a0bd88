#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/gpt2/gpt2_options.h"

namespace tandem {

// The keys and values of all tokens so far, so that each new one is computed alone. Its rows are the sequences of a
// batch; those that are shorter begin with padding, which no token sees.
class KvCache {
 public:
  // `padding` says how many tokens at the begin of each row are none. Memory for `capacity` tokens in each row, padding
  // included, is taken at once. `tensors` is the type and device of the model's weights.
  KvCache(const Gpt2Options& options, std::span<const std::int64_t> padding, std::int64_t capacity,
          const torch::TensorOptions& tensors);

  std::int64_t length() const { return length_; }

  // Makes place for `count` new tokens in each row; an Error when there is none, in the cache or in the context. Then
  // `attend` is called once for each layer.
  void extend(std::int64_t count);

  // Of the new tokens, for the position embedding: (rows, count), or (1, count) where all rows have the same.
  torch::Tensor positions() const;

  // Remembers the keys and values of the new tokens and gives their attention to all tokens up to themselves. All are
  // (rows, heads, count, head width).
  torch::Tensor attend(std::int64_t layer, const torch::Tensor& queries, const torch::Tensor& keys,
                       const torch::Tensor& values);

  // Goes on with these rows only, in this order; a row may be named more than once.
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
  std::int64_t begin_ = 0;             // of the new tokens
  std::int64_t length_ = 0;            // of all tokens, the new ones included
  bool is_first_ = false;              // there was nothing before the new tokens
  std::optional<torch::Tensor> mask_;  // which tokens each new one sees, where it is not all
};

}  // namespace tandem
