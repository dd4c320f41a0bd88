#pragma once

#include <torch/types.h>

namespace tandem {

// at::linear with a faster path for a single row on the CPU, float or bfloat16 weights and no gradients: it accumulates
// in float, in another order than torch, and rounds once.
torch::Tensor fast_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace tandem
