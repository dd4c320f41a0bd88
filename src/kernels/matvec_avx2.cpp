#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#pragma GCC target("avx2,fma")
#include "kernels/matvec_rows.h"

namespace tandem {

void matvec_avx2(const MatVec& product) { multiply<32>(product); }

}  // namespace tandem
