#pragma once

#include <torch/nn/module.h>

namespace tandem {

// Moves the parameters that lie in the memory of the CPU to pages of 2 MiB, where the kernel has them: weights of
// hundreds of megabytes are then read faster, by a tenth or by a half, as the memory is busy or not. For a model that
// is used and no more trained.
void use_huge_pages(torch::nn::Module& module);

}  // namespace tandem
