#pragma once

#include <cstddef>

namespace tandem {

// So many bytes of T that the compiler computes with at once: by the instructions of the file that uses it.
template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));  // an alias cannot carry the attribute
};
template <class T, std::size_t kBytes>
using Vector = typename VectorOf<T, kBytes>::Type;

}  // namespace tandem
