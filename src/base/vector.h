#pragma once

#include <cstddef>

namespace tandem {

// A SIMD vector of kBytes bytes of T; the instructions depend on the compiler options of the including file.
template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));  // an alias template cannot have the attribute
};
template <class T, std::size_t kBytes>
using Vector = typename VectorOf<T, kBytes>::Type;

}  // namespace tandem
