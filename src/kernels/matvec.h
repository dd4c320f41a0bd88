#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tandem {

enum class WeightType : std::uint8_t { Float, BFloat16 };

// Rows of a matrix, to be multiplied by one vector: output[i] = weight[i] . input, in float. It is memory that decides
// how long this takes, so the weights are read once, one after the other.
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

// One instruction set. They add in different orders.
struct MatVecVariant {
  std::string_view name;
  void (*multiply)(const MatVec& product);
};

// Those that this CPU has, the fastest first.
std::span<const MatVecVariant> matvec_variants();

}  // namespace tandem
