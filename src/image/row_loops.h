#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tandem {

// The innermost loops, over the bytes of a row. Plain pointers: inline functions compiled for a newer CPU could replace
// the shared copy at link time, so files with their own instruction set use no standard templates.

// Weights of 22 bits, as Pillow's.
inline constexpr int kMixBits = 22;

// out[i] = the sum over k of weights[k] * rows[k][i], rounded, of values that are never beyond 0 .. 255.
struct MixRows {
  const std::uint8_t* const* rows;
  const std::int32_t* weights;
  int num_rows;
  std::uint8_t* out;
  std::size_t size;
};

// The same along a row: pixel x of the output is the sum of counts[x] pixels from firsts[x] on, with weights from
// x * stride on. `in` may be read up to 8 bytes beyond its end.
struct MixColumns {
  const std::uint8_t* in;
  const int* firsts;
  const int* counts;
  const std::int32_t* weights;
  int stride;
  std::uint8_t* out;
  int width;
  int channels;
};

// Bilinear samples along a line. Positions are fixed-point numbers with 32 bits after the point; each lies inside of
// the pixels, with a neighbour to the right and below. `in` may be read up to 8 bytes beyond its end.
struct SampleLine {
  const std::uint8_t* in;
  std::size_t row_size;
  int channels;
  std::int64_t x;
  std::int64_t y;
  std::int64_t step_x;
  std::int64_t step_y;
  std::uint8_t* out;
  int count;
  bool rounds;  // to nearest; else down
};

// out[i] = the sum over k of weights[k] * in[i + k * step]; at most 65,535.
struct SlideWeights {
  const std::uint8_t* in;
  std::size_t step;
  const std::uint16_t* weights;
  int num_weights;
  std::uint16_t* out;
  std::size_t size;
};

// out[i] = the sum over k of weights[k] * rows[k][i], shifted right with rounding. The weights add up to 2 to the power
// of shift / 2.
struct MixSums {
  const std::uint16_t* const* rows;
  const std::uint16_t* weights;
  int num_rows;
  int shift;  // up to 8: every sum is below 65,536, rounding included
  std::uint8_t* out;
  std::size_t size;
};

struct RowLoops {
  std::string_view name;
  void (*mix_rows)(const MixRows& work);
  void (*mix_columns)(const MixColumns& work);
  void (*sample_line)(const SampleLine& work);
  void (*slide_weights)(const SlideWeights& work);
  void (*mix_sums)(const MixSums& work);
};

// The variants that this CPU supports, fastest first. All give the same bits.
std::span<const RowLoops> row_loops_variants();
inline const RowLoops& row_loops() { return row_loops_variants().front(); }

}  // namespace tandem
