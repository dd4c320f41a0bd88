#include <cstddef>
#include <cstdint>
#include <cstring>

#include "comm/shm/variants.h"

#pragma GCC target("avx2")
#include "comm/shm/tree.h"

namespace tandem {

void reduce_avx2(const Operands& operands) { reduce_vectors<32>(operands); }

}  // namespace tandem
