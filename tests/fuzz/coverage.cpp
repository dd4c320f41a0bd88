#include "fuzz/coverage.h"

#include <bit>
#include <cstdint>

namespace tandem {
namespace {

// Plain arrays: what the compiler's calls run through must not be code that calls back, as a copy of a template may,
// nor be gone when static objects are destroyed.
constexpr std::size_t kSteps = 1 << 16;
std::uint8_t counts[kSteps];  // of this run
std::uint8_t seen[kSteps];    // a bit for each power of two of a count
std::size_t taken[kSteps];    // steps of this run
std::size_t num_taken = 0;
std::size_t place = 0;

}  // namespace

void start_run() {
  for (std::size_t i = 0; i < num_taken; ++i) counts[taken[i]] = 0;
  num_taken = 0;
  place = 0;
}

std::size_t num_new_steps() {
  std::size_t num_new = 0;
  const std::size_t num_steps = num_taken;
  for (std::size_t i = 0; i < num_steps; ++i) {
    const std::size_t step = taken[i];
    const auto power = static_cast<std::uint8_t>(std::bit_floor(counts[step]));
    if ((seen[step] & power) == 0) ++num_new;
    seen[step] |= power;
  }
  return num_new;
}

// The compiler calls it at every branch; the name is the compiler's.
extern "C" void __sanitizer_cov_trace_pc() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const std::size_t here = address * 0x9E3779B97F4A7C15ULL >> 48;
  const std::size_t step = (here ^ place) % kSteps;
  place = here >> 1;
  if (counts[step] == 0) taken[num_taken++] = step;
  if (counts[step] < 255) ++counts[step];
}

}  // namespace tandem
