#pragma once

#include <torch/types.h>

#include <span>

namespace tandem {

// The length of all gradients taken as one vector: a scalar on their device, for which the host does not wait. On the
// CPU its bits do not depend on the number of threads.
torch::Tensor global_norm(std::span<const torch::Tensor> gradients);

// What to multiply gradients of that length by so that it is at most `max_norm`: max_norm / (norm + 1e-6), as in torch,
// and never above 1. A divisor of the gradients is divided by it instead. Float32, as Optimizer::update wants it.
torch::Tensor clip_coefficient(const torch::Tensor& norm, double max_norm);

// 1 where the norm is infinite or NaN, and so some gradient is or all are too large to use; else 0. For
// Optimizer::update and LossScaler::update.
torch::Tensor found_inf(const torch::Tensor& norm);

}  // namespace tandem
