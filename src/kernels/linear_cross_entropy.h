#pragma once

#include <torch/types.h>

#include <cstdint>

namespace tandem {

// The sum of cross_entropy(x * weight^T, targets), in float, for `x` (count, width), `weight` (classes, width) and
// `targets` (count), without storing all logits: rows are processed in chunks of at most `max_elements` logits (0:
// chosen by device), and the forward pass computes and saves the gradients of `x` and `weight`. Matrix products use the
// autocast type, if autocast is enabled. Double backward is an Error.
torch::Tensor linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& targets,
                                   std::int64_t max_elements = 0);

// The reference: torch's own functions, with all logits at once.
torch::Tensor plain_linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight,
                                         const torch::Tensor& targets);

}  // namespace tandem
