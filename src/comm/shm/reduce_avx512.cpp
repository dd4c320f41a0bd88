#include <cstddef>
#include <cstdint>
#include <cstring>

#include "comm/shm/variants.h"

#pragma GCC target("avx512f,avx512bw")
#include "comm/shm/tree.h"

namespace tandem {

void reduce_avx512(const Operands& operands) { reduce_vectors<64>(operands); }

}  // namespace tandem
