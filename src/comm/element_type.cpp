#include "comm/element_type.h"

namespace tandem {

ElementType element_type(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat: return ElementType::Float;
    case torch::kDouble: return ElementType::Double;
    case torch::kHalf: return ElementType::Half;
    case torch::kBFloat16: return ElementType::BFloat16;
    case torch::kInt: return ElementType::Int;
    case torch::kLong: return ElementType::Long;
    default: return ElementType::Byte;
  }
}

}  // namespace tandem
