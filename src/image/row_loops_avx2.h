#pragma once

#include "image/row_loops.h"

namespace tandem {

void mix_rows_avx2(const MixRows& work);
void mix_columns_avx2(const MixColumns& work);
void sample_line_avx2(const SampleLine& work);
void slide_weights_avx2(const SlideWeights& work);
void mix_sums_avx2(const MixSums& work);

}  // namespace tandem
