#pragma once

#include <torch/nn/module.h>

namespace tandem {

// Moves the parameters that lie in the memory of the CPU to pages of 2 MiB, where the kernel has them: the CPU then
// reads weights of hundreds of megabytes in little more than half the time. For a model that is used and no more
// trained.
void use_huge_pages(torch::nn::Module& module);

}  // namespace tandem
