#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "comm/shm/variants.h"

#pragma GCC target("avx512f,avx512bw,f16c")
#include "comm/shm/half_f16c.h"
#include "comm/shm/tree.h"

namespace tandem {

void reduce_avx512(const Operands& operands) { reduce_vectors<64, HalfF16c>(operands); }

}  // namespace tandem
