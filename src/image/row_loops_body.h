#pragma once

#include "image/row_loops.h"

namespace tandem {

// Loops that the compiler makes vector instructions of. `kVector` tells the copies for several CPUs apart, so that none
// replaces another at link time.

inline constexpr std::size_t kLoopBlock = 128;

// Enlarging mixes two rows.
template <int kVector>
void mix_two_rows(const MixRows& work) {
  constexpr std::int32_t kHalf = 1 << (kMixBits - 1);
  const std::uint8_t* first = work.rows[0];
  const std::uint8_t* second = work.rows[1];
  const std::int32_t of_first = work.weights[0];
  const std::int32_t of_second = work.weights[1];
  std::uint8_t* __restrict out = work.out;
  for (std::size_t i = 0; i < work.size; ++i) {
    out[i] = static_cast<std::uint8_t>((first[i] * of_first + second[i] * of_second + kHalf) >> kMixBits);
  }
}

template <int kVector>
void mix_rows_loop(const MixRows& work) {
  if (work.num_rows == 2) {
    mix_two_rows<kVector>(work);
    return;
  }
  constexpr std::int32_t kHalf = 1 << (kMixBits - 1);
  for (std::size_t begin = 0; begin < work.size; begin += kLoopBlock) {
    const std::size_t size = work.size - begin < kLoopBlock ? work.size - begin : kLoopBlock;
    std::int32_t sums[kLoopBlock];
    for (std::size_t i = 0; i < size; ++i) sums[i] = kHalf;
    for (int k = 0; k < work.num_rows; ++k) {
      const std::uint8_t* row = work.rows[k] + begin;
      const std::int32_t weight = work.weights[k];
      for (std::size_t i = 0; i < size; ++i) sums[i] += weight * row[i];
    }
    for (std::size_t i = 0; i < size; ++i) work.out[begin + i] = static_cast<std::uint8_t>(sums[i] >> kMixBits);
  }
}

template <int kVector>
void slide_weights_loop(const SlideWeights& work) {
  for (std::size_t begin = 0; begin < work.size; begin += kLoopBlock) {
    const std::size_t size = work.size - begin < kLoopBlock ? work.size - begin : kLoopBlock;
    std::uint16_t sums[kLoopBlock] = {};
    for (int k = 0; k < work.num_weights; ++k) {
      const std::uint8_t* in = work.in + begin + static_cast<std::size_t>(k) * work.step;
      const std::uint16_t weight = work.weights[k];
      for (std::size_t i = 0; i < size; ++i) sums[i] = static_cast<std::uint16_t>(sums[i] + weight * in[i]);
    }
    for (std::size_t i = 0; i < size; ++i) work.out[begin + i] = sums[i];
  }
}

template <int kVector, class Sum>
void mix_sums_as(const MixSums& work) {
  for (std::size_t begin = 0; begin < work.size; begin += kLoopBlock) {
    const std::size_t size = work.size - begin < kLoopBlock ? work.size - begin : kLoopBlock;
    Sum sums[kLoopBlock];
    for (std::size_t i = 0; i < size; ++i) sums[i] = static_cast<Sum>(Sum{1} << (work.shift - 1));
    for (int k = 0; k < work.num_rows; ++k) {
      const std::uint16_t* row = work.rows[k] + begin;
      const Sum weight = work.weights[k];
      for (std::size_t i = 0; i < size; ++i) sums[i] = static_cast<Sum>(sums[i] + weight * row[i]);
    }
    for (std::size_t i = 0; i < size; ++i) work.out[begin + i] = static_cast<std::uint8_t>(sums[i] >> work.shift);
  }
}

template <int kVector>
void mix_sums_loop(const MixSums& work) {
  if (work.shift <= 8) {
    mix_sums_as<kVector, std::uint16_t>(work);
  } else {
    mix_sums_as<kVector, std::uint32_t>(work);
  }
}

template <int kVector, int kChannels>
void mix_columns_of(const MixColumns& work) {
  constexpr std::int32_t kHalf = 1 << (kMixBits - 1);
  std::uint8_t* out = work.out;
  for (int x = 0; x < work.width; ++x) {
    const std::uint8_t* in = work.in + static_cast<std::ptrdiff_t>(work.firsts[x]) * kChannels;
    const std::int32_t* weights = work.weights + static_cast<std::ptrdiff_t>(x) * work.stride;
    std::int32_t sums[kChannels];
    for (std::int32_t& sum : sums) sum = kHalf;
    for (int k = 0; k < work.counts[x]; ++k, in += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += weights[k] * in[c];
    }
    for (const std::int32_t sum : sums) *out++ = static_cast<std::uint8_t>(sum >> kMixBits);
  }
}

template <int kVector>
void mix_columns_loop(const MixColumns& work) {
  if (work.channels == 1) mix_columns_of<kVector, 1>(work);
  if (work.channels == 3) mix_columns_of<kVector, 3>(work);
  if (work.channels == 4) mix_columns_of<kVector, 4>(work);
}

// Weights have 14 bits; of the product with a pixel 15 bits are kept between the two directions.
inline constexpr int kSampleBits = 14;
inline constexpr int kBetweenShift = 7;
inline constexpr int kSampleShift = 2 * kSampleBits - kBetweenShift;

struct SampleWeights {
  std::int32_t left, right, upper, lower;
};

template <int kVector>
std::int32_t fraction_of(std::int64_t position) {
  return static_cast<std::int32_t>(position >> (32 - kSampleBits)) & ((1 << kSampleBits) - 1);
}

template <int kVector>
std::uint8_t sample_value(const std::uint8_t* in, const std::uint8_t* below, int channels, const SampleWeights& weights,
                          std::int32_t rounding) {
  const std::int32_t high = (in[0] * weights.left + in[channels] * weights.right) >> kBetweenShift;
  const std::int32_t low = (below[0] * weights.left + below[channels] * weights.right) >> kBetweenShift;
  return static_cast<std::uint8_t>((high * weights.upper + low * weights.lower + rounding) >> kSampleShift);
}

template <int kVector, int kChannels>
void sample_line_of(const SampleLine& work) {
  const std::int32_t rounding = work.rounds ? 1 << (kSampleShift - 1) : 0;
  std::int64_t x = work.x;
  std::int64_t y = work.y;
  std::uint8_t* out = work.out;
  for (int i = 0; i < work.count; ++i, x += work.step_x, y += work.step_y) {
    const std::uint8_t* in = work.in + (y >> 32) * static_cast<std::ptrdiff_t>(work.row_size) + (x >> 32) * kChannels;
    const std::int32_t right = fraction_of<kVector>(x);
    const std::int32_t lower = fraction_of<kVector>(y);
    const SampleWeights weights{(1 << kSampleBits) - right, right, (1 << kSampleBits) - lower, lower};
    for (int c = 0; c < kChannels; ++c)
      *out++ = sample_value<kVector>(in + c, in + c + work.row_size, kChannels, weights, rounding);
  }
}

template <int kVector>
void sample_line_loop(const SampleLine& work) {
  if (work.channels == 1) sample_line_of<kVector, 1>(work);
  if (work.channels == 3) sample_line_of<kVector, 3>(work);
  if (work.channels == 4) sample_line_of<kVector, 4>(work);
}

}  // namespace tandem
