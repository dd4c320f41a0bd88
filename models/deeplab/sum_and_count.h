#pragma once

#include <torch/types.h>

namespace tandem {

// A term of a loss: a sum, and what to divide it by, both scalars on the device; undefined if it was not asked for.
struct SumAndCount {
  torch::Tensor sum;
  torch::Tensor count;  // has no gradient
};

}  // namespace tandem
