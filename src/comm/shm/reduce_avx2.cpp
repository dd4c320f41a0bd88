#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "comm/shm/variants.h"

#pragma GCC target("avx2,f16c")
#include "comm/shm/half_f16c.h"
#include "comm/shm/tree.h"

namespace tandem {

void reduce_avx2(const Operands& operands) { reduce_vectors<32, HalfF16c>(operands); }

}  // namespace tandem
