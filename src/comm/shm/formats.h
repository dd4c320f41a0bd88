#pragma once

// Element types as stored and as reduced, in vectors of any width. See tree.h on how to include it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector.h"

namespace tandem {
namespace {

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// A type that is reduced without conversion.
template <class T, std::size_t kBytes>
struct Same {
  using Stored = Vector<T, kBytes>;
  using Wide = Stored;
  using Lane = T;
  static constexpr std::size_t kSize = sizeof(T);
  static constexpr std::size_t kLanes = kBytes / kSize;

  static Wide widen(Stored stored) { return stored; }
  static Stored narrow(Wide wide) { return wide; }
};

// The two 16-bit numbers of each 32-bit word as floats: split and merged without a shuffle.
template <std::size_t kBytes>
struct EvenOdd {
  Vector<float, kBytes> even;
  Vector<float, kBytes> odd;
};

// A 16-bit type that is reduced in float; conversions work on the upper half of a word.
template <class Conversion, std::size_t kBytes>
struct Widened {
  using Stored = Vector<std::uint32_t, kBytes>;
  using Wide = EvenOdd<kBytes>;
  using Lane = float;
  static constexpr std::size_t kSize = 2;
  static constexpr std::size_t kLanes = kBytes / kSize;
  static constexpr std::uint32_t kUpper = 0xFFFF0000;

  static Wide widen(Stored stored) { return {Conversion::widen(stored << 16), Conversion::widen(stored & kUpper)}; }
  static Stored narrow(Wide wide) {
    return (Conversion::narrow(wide.even) >> 16) | (Conversion::narrow(wide.odd) & kUpper);
  }
};

template <std::size_t kBytes>
struct BFloat16Conversion {
  using Bits = Vector<std::uint32_t, kBytes>;
  using Float = Vector<float, kBytes>;

  static Float widen(Bits upper) { return bits_as<Float>(upper); }

  // Rounds to nearest even. A NaN came from 16 bits: its lower half is 0, so nothing carries into the upper half.
  static Bits narrow(Float value) {
    const Bits bits = bits_as<Bits>(value);
    return bits + 0x7FFFU + ((bits >> 16) & 1U);
  }
};

// As torch's c10::Half: correct also with flush-to-zero. All products are exact.
template <std::size_t kBytes>
struct HalfConversion {
  using Bits = Vector<std::uint32_t, kBytes>;
  using Float = Vector<float, kBytes>;

  static Float widen(Bits upper) {
    const Bits twice = upper + upper;
    const Float normal = bits_as<Float>((twice >> 4) + 0x70000000U) * 0x1p-112F;
    const Float subnormal = bits_as<Float>((twice >> 17) | 0x3F000000U) - 0.5F;
    const Bits magnitude = twice < (1U << 27) ? bits_as<Bits>(subnormal) : bits_as<Bits>(normal);
    return bits_as<Float>(magnitude | (upper & 0x80000000U));
  }

  // Rounds by adding a power of two whose lowest mantissa bit is that of the result.
  static Bits narrow(Float value) {
    const Bits bits = bits_as<Bits>(value);
    const Bits twice = bits + bits;
    const Bits exponent = twice & 0xFF000000U;
    const Bits least = Bits{} + 0x71000000U;
    const Float anchor = bits_as<Float>(((exponent < least ? least : exponent) >> 1) + 0x07800000U);
    const Float magnitude = bits_as<Float>(bits & 0x7FFFFFFFU) * 0x1p112F * 0x1p-110F;
    const Bits rounded = bits_as<Bits>(anchor + magnitude);
    const Bits number = ((rounded << 3) & 0x7C000000U) + ((rounded & 0x0FFFU) << 16);
    const Bits nan = Bits{} + 0x7E000000U;
    return (twice > 0xFF000000U ? nan : number) | (bits & 0x80000000U);
  }
};

}  // namespace
}  // namespace tandem
