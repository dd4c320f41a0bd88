#pragma once

#include <tandem/communicator.h>
#include <torch/nn/module.h>

namespace tandem {

// Compares the bits of every parameter and buffer over the ranks, each of which calls it. The Error (kind Comm) names
// the first tensor that differs, and on which ranks. What travels is 8 bytes a tensor.
void check_replicas(const torch::nn::Module& module, Communicator& comm);

}  // namespace tandem
