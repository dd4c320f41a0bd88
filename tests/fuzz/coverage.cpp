#include "fuzz/coverage.h"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace tandem {
namespace {

struct Coverage {
  static constexpr std::size_t kSteps = 1 << 16;

  std::array<std::uint8_t, kSteps> counts{};  // of this run
  std::array<std::uint8_t, kSteps> seen{};    // a bit for each power of two of a count
  std::vector<std::size_t> taken;             // in this run
  std::size_t place = 0;

  void visit(std::uintptr_t address) {
    const std::size_t here = address * 0x9E3779B97F4A7C15ULL >> 48;
    const std::size_t step = (here ^ place) % kSteps;
    place = here >> 1;
    if (counts[step] == 0) taken.push_back(step);
    if (counts[step] < 255) ++counts[step];
  }
};

Coverage coverage;

}  // namespace

void start_run() {
  for (const std::size_t step : coverage.taken) coverage.counts[step] = 0;
  coverage.taken.clear();
  coverage.place = 0;
}

std::size_t num_new_steps() {
  std::size_t num_new = 0;
  for (const std::size_t step : coverage.taken) {
    const auto power = static_cast<std::uint8_t>(std::bit_floor(coverage.counts[step]));
    if ((coverage.seen[step] & power) == 0) ++num_new;
    coverage.seen[step] |= power;
  }
  return num_new;
}

}  // namespace tandem

// The compiler calls it at every branch; the name is the compiler's.
extern "C" void __sanitizer_cov_trace_pc() {  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
  tandem::coverage.visit(reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)));
}
