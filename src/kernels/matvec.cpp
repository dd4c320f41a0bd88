#include "kernels/matvec.h"

#include <array>

namespace tandem {
namespace {

// AVX-512 is slower here: the product is limited by memory bandwidth.
constexpr std::array<MatVecVariant, 2> kVariants{{{"avx2", &matvec_avx2}, {"plain", &matvec_plain}}};

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

}  // namespace

std::span<const MatVecVariant> matvec_variants() {
  static const auto kKnown = std::span(kVariants).subspan(has_avx2() ? 0 : 1);
  return kKnown;
}

}  // namespace tandem
