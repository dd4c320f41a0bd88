#pragma once

#include <tandem/communicator.h>
#include <torch/nn/module.h>

namespace tandem {

// All ranks must have the same parameters and buffers: names, order, types, shapes, strides, requires_grad, and which
// are the same tensor. The Error names the first that differs, and what each side has, on every rank.
void check_same_model(const torch::nn::Module& module, Communicator& comm);

}  // namespace tandem
