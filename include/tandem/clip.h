#pragma once

#include <torch/types.h>

#include <span>

namespace tandem {

// The norm of all gradients taken as one vector: a scalar on their device, without a synchronisation of the host. On
// the CPU its bits do not depend on the number of threads.
torch::Tensor global_norm(std::span<const torch::Tensor> gradients);

// The factor that clips gradients of this norm to `max_norm`: max_norm / (norm + 1e-6) as in torch, at most 1; always 1
// when `max_norm` is 0, which means no clipping. An Error for a negative `max_norm`. Float32, as Optimizer::update
// wants it, whose divisor is divided by this factor.
torch::Tensor clip_coefficient(const torch::Tensor& norm, double max_norm);

// 1 if the norm is infinite or NaN, else 0; for Optimizer::update and LossScaler::update.
torch::Tensor found_inf(const torch::Tensor& norm);

}  // namespace tandem
