#pragma once

#include <tandem/communicator.h>
#include <torch/nn/module.h>

namespace tandem {

// Checks that all ranks have the same parameters and buffers: names, order, types, shapes, strides, requires_grad and
// tying. On every rank the Error names the first difference and both sides.
void check_same_model(const torch::nn::Module& module, Communicator& comm);

}  // namespace tandem
