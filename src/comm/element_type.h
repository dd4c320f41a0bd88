#pragma once

#include <tandem/communicator.h>

#include "comm/shm/reduce.h"

namespace tandem {

// For the types that Communicator supports.
ElementType element_type(const torch::Tensor& tensor);

inline ElementOp element_op(ReduceOp op) {
  if (op == ReduceOp::Sum) return ElementOp::Sum;
  return op == ReduceOp::Min ? ElementOp::Min : ElementOp::Max;
}

}  // namespace tandem
