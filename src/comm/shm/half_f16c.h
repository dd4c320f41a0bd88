#pragma once

#include <immintrin.h>

#include <cstddef>

#include "comm/shm/formats.h"

namespace tandem {
namespace {

// Half conversion with F16C instructions. Wider vectors gain nothing: this is limited by memory bandwidth.
struct HalfF16c {
  using Stored = __m128i;
  using Wide = Vector<float, 32>;
  using Lane = float;
  static constexpr std::size_t kSize = 2;
  static constexpr std::size_t kLanes = 8;

  static Wide widen(Stored stored) { return _mm256_cvtph_ps(stored); }
  static Stored narrow(Wide wide) { return _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
};

}  // namespace
}  // namespace tandem
