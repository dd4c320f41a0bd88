#include "image/row_loops.h"

#include <array>

#include "image/row_loops_avx2.h"
#include "image/row_loops_body.h"

namespace tandem {
namespace {

constexpr std::array<RowLoops, 2> kLoops{
    {{"avx2", &mix_rows_avx2, &mix_columns_avx2, &sample_line_avx2, &slide_weights_avx2, &mix_sums_avx2},
     {"plain", &mix_rows_loop<16>, &mix_columns_loop<16>, &sample_line_loop<16>, &slide_weights_loop<16>,
      &mix_sums_loop<16>}}};

}  // namespace

std::span<const RowLoops> row_loops_variants() {
  static const auto kKnown = std::span(kLoops).subspan(__builtin_cpu_supports("avx2") ? 0 : 1);
  return kKnown;
}

}  // namespace tandem
