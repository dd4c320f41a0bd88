#pragma once

#include <tandem/communicator.h>

#include "comm/shm/reduce.h"

namespace tandem {

// Of a type that a Communicator lets pass.
ElementType element_type(const torch::Tensor& tensor);

inline Reduction reduction(ReduceOp op) {
  if (op == ReduceOp::Sum) return Reduction::Sum;
  return op == ReduceOp::Min ? Reduction::Min : Reduction::Max;
}

}  // namespace tandem
