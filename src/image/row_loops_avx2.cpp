#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "image/row_loops_avx2.h"

#pragma GCC target("avx2")
#include "image/row_loops_body.h"

namespace tandem {
namespace {

constexpr int kAvx2 = 32;

// The lowest byte of each of three numbers, and a byte of anything: what follows is written later.
void store_colour(__m128i numbers, std::uint8_t* out) {
  const __m128i bytes =
      _mm_shuffle_epi8(numbers, _mm_setr_epi8(0, 4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const std::int32_t word = _mm_cvtsi128_si32(bytes);
  std::memcpy(out, &word, sizeof(word));
}

__m128i load_8(const std::uint8_t* in) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in)); }

__m128i sum_both(__m256i numbers) {
  return _mm_add_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
}

// Two pixels at once, one in each half.
__m128i mix_colour(const std::uint8_t* in, const std::int32_t* weights, int count) {
  const __m128i apart = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i first_and_second = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  __m256i sums = _mm256_setr_epi32(1 << (kMixBits - 1), 1 << (kMixBits - 1), 1 << (kMixBits - 1), 0, 0, 0, 0, 0);
  int k = 0;
  for (; k + 2 <= count; k += 2, in += 6) {
    const __m256i pixels = _mm256_cvtepu8_epi32(_mm_shuffle_epi8(load_8(in), apart));
    const __m128i pair = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + k));
    const __m256i both = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(pair), first_and_second);
    sums = _mm256_add_epi32(sums, _mm256_mullo_epi32(pixels, both));
  }
  __m128i sum = sum_both(sums);
  if (k < count) sum = _mm_add_epi32(sum, _mm_mullo_epi32(_mm_cvtepu8_epi32(load_8(in)), _mm_set1_epi32(weights[k])));
  return _mm_srli_epi32(sum, kMixBits);
}

void mix_colours(const MixColumns& work) {
  const int last = work.width - 1;
  for (int x = 0; x < last; ++x) {
    store_colour(mix_colour(work.in + static_cast<std::ptrdiff_t>(work.firsts[x]) * 3,
                            work.weights + static_cast<std::ptrdiff_t>(x) * work.stride, work.counts[x]),
                 work.out + static_cast<std::ptrdiff_t>(x) * 3);
  }
  MixColumns rest = work;
  rest.firsts += last;
  rest.counts += last;
  rest.weights += static_cast<std::ptrdiff_t>(last) * work.stride;
  rest.out += static_cast<std::ptrdiff_t>(last) * 3;
  rest.width = 1;
  mix_columns_of<kAvx2, 3>(rest);
}

// The upper two pixels in the lower half, the lower two in the upper.
__m128i sample_colour(const std::uint8_t* in, std::size_t row_size, std::int32_t right, std::int32_t lower,
                      __m128i rounding) {
  constexpr std::int32_t kOne = 1 << kSampleBits;
  const __m256i neighbours =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i pixels = _mm256_shuffle_epi8(_mm256_set_m128i(load_8(in + row_size), load_8(in)), neighbours);
  const __m256i across = _mm256_madd_epi16(pixels, _mm256_set1_epi32((kOne - right) | right << 16));
  const __m256i weights = _mm256_set_m128i(_mm_set1_epi32(lower), _mm_set1_epi32(kOne - lower));
  const __m256i down = _mm256_madd_epi16(_mm256_srli_epi32(across, kBetweenShift), weights);
  return _mm_srli_epi32(_mm_add_epi32(sum_both(down), rounding), kSampleShift);
}

void sample_colours(const SampleLine& work) {
  const __m128i rounding = _mm_set1_epi32(work.rounds ? 1 << (kSampleShift - 1) : 0);
  SampleLine rest = work;
  for (; rest.count > 1; --rest.count) {
    const std::uint8_t* in = work.in + (rest.y >> 32) * static_cast<std::ptrdiff_t>(work.row_size) + (rest.x >> 32) * 3;
    store_colour(sample_colour(in, work.row_size, fraction_of<kAvx2>(rest.x), fraction_of<kAvx2>(rest.y), rounding),
                 rest.out);
    rest.x += work.step_x;
    rest.y += work.step_y;
    rest.out += 3;
  }
  sample_line_of<kAvx2, 3>(rest);
}

// Less 32,768 a sum is a signed number of 16 bits, of which two are multiplied and added by one instruction. The
// weights add up to 2 to the power of shift / 2.
void mix_16_sums(const MixSums& work, std::size_t at) {
  const __m256i middle = _mm256_set1_epi16(INT16_MIN);
  const std::int32_t rest = (1 << (work.shift - 1)) + (1 << (work.shift / 2 + 15));
  __m256i low = _mm256_set1_epi32(rest);
  __m256i high = low;
  for (int k = 0; k < work.num_rows; k += 2) {
    const bool is_pair = k + 1 < work.num_rows;
    const auto* one = reinterpret_cast<const __m256i*>(work.rows[k] + at);
    const auto* other = reinterpret_cast<const __m256i*>(work.rows[is_pair ? k + 1 : k] + at);
    const __m256i first = _mm256_xor_si256(_mm256_loadu_si256(one), middle);
    const __m256i second = _mm256_xor_si256(_mm256_loadu_si256(other), middle);
    const std::int32_t of_second = is_pair ? work.weights[k + 1] : 0;
    const __m256i weights = _mm256_set1_epi32(work.weights[k] | of_second << 16);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), weights));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), weights));
  }
  const __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(low, work.shift), _mm256_srli_epi32(high, work.shift));
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(work.out + at), bytes);
}

void mix_wide_sums(const MixSums& work) {
  std::size_t at = 0;
  for (; at + 16 <= work.size; at += 16) mix_16_sums(work, at);
  MixSums rest = work;
  rest.out += at;
  rest.size -= at;
  for (; rest.size > 0; --rest.size, ++rest.out, ++at) {
    std::uint32_t sum = 1U << (work.shift - 1);
    for (int k = 0; k < work.num_rows; ++k) sum += std::uint32_t{work.weights[k]} * work.rows[k][at];
    *rest.out = static_cast<std::uint8_t>(sum >> work.shift);
  }
}

}  // namespace

void mix_rows_avx2(const MixRows& work) { mix_rows_loop<kAvx2>(work); }

void mix_columns_avx2(const MixColumns& work) {
  if (work.channels == 3) {
    mix_colours(work);
  } else {
    mix_columns_loop<kAvx2>(work);
  }
}

void sample_line_avx2(const SampleLine& work) {
  if (work.channels == 3) {
    sample_colours(work);
  } else {
    sample_line_loop<kAvx2>(work);
  }
}

void slide_weights_avx2(const SlideWeights& work) { slide_weights_loop<kAvx2>(work); }

void mix_sums_avx2(const MixSums& work) {
  if (work.shift <= 8) {
    mix_sums_loop<kAvx2>(work);
  } else {
    mix_wide_sums(work);
  }
}

}  // namespace tandem
