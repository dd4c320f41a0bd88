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

// Runs `block` and keeps its inputs instead of what it computed on the way; the backward pass runs it a second time.
// So a deep model needs memory for one block and for the inputs of the others.
//
// The gradients are the same, bit for bit, as those of `block(inputs)`, except that a parameter which other parts of
// the model use as well may be summed in another order. The second run finds the random generators (of the CPU and of
// the tensors' devices) and autocast as the first did, and leaves them as they were.
//
// `parameters` are all tensors besides the inputs that the block reads and that may need a gradient; one that is
// missing is an Error in the backward pass. The block has no side effects that must happen once, or it asks
// `is_recomputing`, as our BatchNorm does. It does not change its inputs. No gradient of a gradient: that is an Error.
// Hooks on the gradient of a parameter run once, in the outer backward pass; also where the block did not use it.
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

// Whether a block runs on this thread for the second time.
bool is_recomputing();

}  // namespace tandem
