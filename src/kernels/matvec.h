#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tandem {

enum class WeightType : std::uint8_t { Float, BFloat16 };

// A matrix-vector product: output[i] = dot(weight[i], input), accumulated in float. It is limited by memory bandwidth,
// so the weights are read once, sequentially.
struct MatVec {
  WeightType type;
  const void* weight;  // rows x columns
  const void* input;   // of the same type
  float* output;
  std::size_t rows;
  std::size_t columns;  // a multiple of kMatVecColumns
};

inline constexpr std::size_t kMatVecColumns = 64;

void matvec_avx2(const MatVec& product);
void matvec_plain(const MatVec& product);

// One instruction set. The order of summation differs between them.
struct MatVecVariant {
  std::string_view name;
  void (*multiply)(const MatVec& product);
};

// The variants that this CPU supports, fastest first.
std::span<const MatVecVariant> matvec_variants();

}  // namespace tandem
