#include "comm/shm/reduce.h"

#include <cpuid.h>

#include <array>

#include "comm/shm/variants.h"

namespace tandem {
namespace {

constexpr std::array<Variant, 3> kVariants{
    {{"avx512", &reduce_avx512}, {"avx2", &reduce_avx2}, {"plain", &reduce_plain}}};

// __builtin_cpu_supports of older clangs does not know f16c.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

std::size_t fastest() {
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return 2;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? 0 : 1;
}

}  // namespace

std::span<const Variant> variants() {
  static const auto kKnown = std::span(kVariants).subspan(fastest());
  return kKnown;
}

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::Double:
    case ElementType::Long: return 8;
    case ElementType::Float:
    case ElementType::Int: return 4;
    case ElementType::Half:
    case ElementType::BFloat16: return 2;
    case ElementType::Byte: break;
  }
  return 1;
}

void reduce(ElementType type, ElementOp op, double divisor, std::span<const std::byte* const> inputs,
            std::span<std::byte* const> outputs, std::size_t count) {
  variants().front().reduce({type, op, divisor, inputs.data(), inputs.size(), outputs.data(), outputs.size(), count});
}

}  // namespace tandem
