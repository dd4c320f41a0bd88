#pragma once

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace tandem {

using Tensors = std::vector<torch::Tensor>;
using RecomputeBlock = std::function<Tensors(const Tensors& inputs)>;

// Activation checkpointing, as torch.utils.checkpoint: runs `block` and saves its inputs instead of its activations;
// the backward pass runs the block again. A deep model then needs memory for one block and for the inputs of the
// others.
//
// Gradients are bit-identical to those of `block(inputs)`, except that the gradient of a parameter that is also used
// outside the block may be summed in another order. The second run sees the random generators (of the CPU and of the
// devices of the tensors) and autocast as the first did, and restores them.
//
// `parameters`: all tensors besides the inputs that the block reads and that may require grad; a missing one is an
// Error in the backward pass. The block must not modify its inputs. It must have no side effects that must happen only
// once, or check `is_recomputing`, as BatchNorm does. Double backward is an Error. Gradient hooks of a parameter run
// once, in the outer backward pass, even if the block did not use it.
Tensors recompute(const RecomputeBlock& block, const Tensors& inputs, const Tensors& parameters);

// The same for a module whose `forward` takes and returns tensors.
template <class Contained, std::same_as<torch::Tensor>... Inputs>
torch::Tensor recompute(const torch::nn::ModuleHolder<Contained>& module, const Inputs&... inputs) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto block = [layer = module.ptr()](const Tensors& x) { return Tensors{layer->forward(x[i]...)}; };
    return recompute(block, {inputs...}, module->parameters()).front();
  }
  (std::index_sequence_for<Inputs...>());
}

// True while a block is run again on this thread.
bool is_recomputing();

}  // namespace tandem
