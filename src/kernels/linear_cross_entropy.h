#pragma once

#include <torch/types.h>

#include <cstdint>

namespace tandem {

// The sum of cross_entropy(x * weight^T, targets), in float, for `x` (count, width), `weight` (classes, width) and
// `targets` (count). The logits exist for some rows at a time only, at most `max_elements` of them (0: as many as keep
// the device busy): it is the forward pass that computes the gradients of `x` and `weight`, chunk by chunk, and keeps
// those. Matrices are multiplied in the type of autocast, if it is on. No gradient of a gradient: that is an Error.
torch::Tensor linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& targets,
                                   std::int64_t max_elements = 0);

// The same with all logits at once, by torch's own functions.
torch::Tensor plain_linear_cross_entropy(const torch::Tensor& x, const torch::Tensor& weight,
                                         const torch::Tensor& targets);

}  // namespace tandem
