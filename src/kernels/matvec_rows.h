#pragma once

// The arithmetic of a MatVec, written once for vectors of any width. Each instruction set has a file that includes this
// after `#pragma GCC target`, hence the unnamed namespace: every file gets a copy of its own.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector.h"
#include "kernels/matvec.h"

namespace tandem {
namespace {

template <class To, class From>
To load(const From* from) {
  To to;
  std::memcpy(&to, from, sizeof(to));
  return to;
}

template <class Floats>
float sum(const Floats& values) {
  float total = 0;
  for (std::size_t i = 0; i < sizeof(values) / sizeof(float); ++i) total += values[i];
  return total;
}

template <std::size_t kBytes>
float dot(const float* weight, const float* input, std::size_t columns) {
  using Floats = Vector<float, kBytes>;
  constexpr std::size_t kLanes = kBytes / sizeof(float);
  Floats a{}, b{}, c{}, d{};  // several, since a sum waits for the one before
  for (std::size_t i = 0; i < columns; i += 4 * kLanes) {
    a += load<Floats>(weight + i) * load<Floats>(input + i);
    b += load<Floats>(weight + i + kLanes) * load<Floats>(input + i + kLanes);
    c += load<Floats>(weight + i + 2 * kLanes) * load<Floats>(input + i + 2 * kLanes);
    d += load<Floats>(weight + i + 3 * kLanes) * load<Floats>(input + i + 3 * kLanes);
  }
  return sum((a + b) + (c + d));
}

// A word holds two numbers, each of which is the upper half of a float.
template <std::size_t kBytes>
float dot(const std::uint16_t* weight, const float* input, std::size_t columns) {
  using Floats = Vector<float, kBytes>;
  using Words = Vector<std::uint32_t, kBytes>;
  constexpr std::size_t kLanes = kBytes / sizeof(float);
  constexpr std::uint32_t kUpper = 0xFFFF0000;
  const float* odd_input = input + columns / 2;
  Floats even{}, odd{}, more_even{}, more_odd{};
  for (std::size_t i = 0; i < columns / 2; i += 2 * kLanes) {
    const auto words = load<Words>(weight + 2 * i), more = load<Words>(weight + 2 * i + 2 * kLanes);
    const Words lower = words << 16, upper = words & kUpper, more_lower = more << 16, more_upper = more & kUpper;
    even += load<Floats>(&lower) * load<Floats>(input + i);
    odd += load<Floats>(&upper) * load<Floats>(odd_input + i);
    more_even += load<Floats>(&more_lower) * load<Floats>(input + i + kLanes);
    more_odd += load<Floats>(&more_upper) * load<Floats>(odd_input + i + kLanes);
  }
  return sum((even + odd) + (more_even + more_odd));
}

template <std::size_t kBytes, class Weight>
void multiply_rows(const MatVec& product) {
  const auto* weight = static_cast<const Weight*>(product.weight);
  for (std::size_t row = 0; row < product.rows; ++row) {
    product.output[row] = dot<kBytes>(weight + row * product.columns, product.input, product.columns);
  }
}

template <std::size_t kBytes>
void multiply(const MatVec& product) {
  if (product.type == WeightType::Float) {
    multiply_rows<kBytes, float>(product);
  } else {
    multiply_rows<kBytes, std::uint16_t>(product);
  }
}

}  // namespace
}  // namespace tandem
