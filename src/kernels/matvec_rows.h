#pragma once

// The arithmetic of a MatVec, for vectors of any width. Each instruction set has a file that includes this header after
// `#pragma GCC target`; the unnamed namespace gives each file its own copy.

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
  Floats a{}, b{}, c{}, d{};  // several accumulators hide the latency of the additions
  for (std::size_t i = 0; i < columns; i += 4 * kLanes) {
    a += load<Floats>(weight + i) * load<Floats>(input + i);
    b += load<Floats>(weight + i + kLanes) * load<Floats>(input + i + kLanes);
    c += load<Floats>(weight + i + 2 * kLanes) * load<Floats>(input + i + 2 * kLanes);
    d += load<Floats>(weight + i + 3 * kLanes) * load<Floats>(input + i + 3 * kLanes);
  }
  return sum((a + b) + (c + d));
}

// A 32-bit word holds two bfloat16 numbers, each the upper half of a float.
template <std::size_t kBytes>
Vector<float, kBytes> even(const Vector<std::uint32_t, kBytes>& words) {
  const Vector<std::uint32_t, kBytes> floats = words << 16;
  return load<Vector<float, kBytes>>(&floats);
}

template <std::size_t kBytes>
Vector<float, kBytes> odd(const Vector<std::uint32_t, kBytes>& words) {
  const Vector<std::uint32_t, kBytes> floats = words & 0xFFFF0000U;
  return load<Vector<float, kBytes>>(&floats);
}

template <std::size_t kBytes>
float dot(const std::uint16_t* weight, const std::uint16_t* input, std::size_t columns) {
  using Words = Vector<std::uint32_t, kBytes>;
  constexpr std::size_t kNumbers = kBytes / sizeof(std::uint16_t);
  Vector<float, kBytes> a{}, b{}, c{}, d{};
  for (std::size_t i = 0; i < columns; i += 2 * kNumbers) {
    const auto w = load<Words>(weight + i), more_w = load<Words>(weight + i + kNumbers);
    const auto x = load<Words>(input + i), more_x = load<Words>(input + i + kNumbers);
    a += even<kBytes>(w) * even<kBytes>(x);
    b += odd<kBytes>(w) * odd<kBytes>(x);
    c += even<kBytes>(more_w) * even<kBytes>(more_x);
    d += odd<kBytes>(more_w) * odd<kBytes>(more_x);
  }
  return sum((a + b) + (c + d));
}

template <std::size_t kBytes, class Number>
void multiply_rows(const MatVec& product) {
  const auto* weight = static_cast<const Number*>(product.weight);
  const auto* input = static_cast<const Number*>(product.input);
  for (std::size_t row = 0; row < product.rows; ++row) {
    product.output[row] = dot<kBytes>(weight + row * product.columns, input, product.columns);
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
