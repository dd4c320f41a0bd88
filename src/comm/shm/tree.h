#pragma once

// The arithmetic of reduce(), written once for vectors of any width. Each instruction set has a file that includes this
// after `#pragma GCC target`, hence the unnamed namespace: every file gets a copy of its own.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "comm/shm/variants.h"

namespace tandem {
namespace {

template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));  // an alias cannot carry the attribute
};
template <class T, std::size_t kBytes>
using Vector = typename VectorOf<T, kBytes>::Type;

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// A type that is reduced as it is stored.
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

// A 16-bit type that is reduced as float.
template <std::size_t kBytes>
struct Widened {
  using Stored = Vector<std::uint16_t, kBytes / 2>;
  using Wide = Vector<float, kBytes>;
  using Bits = Vector<std::uint32_t, kBytes>;
  using Lane = float;
  static constexpr std::size_t kSize = 2;
  static constexpr std::size_t kLanes = kBytes / sizeof(float);
};

template <std::size_t kBytes>
struct BFloat16 : Widened<kBytes> {
  using typename Widened<kBytes>::Stored;
  using typename Widened<kBytes>::Wide;
  using typename Widened<kBytes>::Bits;

  static Wide widen(Stored stored) { return bits_as<Wide>(__builtin_convertvector(stored, Bits) << 16); }

  static Stored narrow(Wide wide) {
    const Bits bits = bits_as<Bits>(wide);
    const Bits rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const Bits nan = Bits{} + 0x7FC0U;
    return __builtin_convertvector(wide == wide ? rounded : nan, Stored);
  }
};

// The steps of torch's c10::Half, which work with subnormal numbers switched off too.
template <std::size_t kBytes>
struct Half : Widened<kBytes> {
  using typename Widened<kBytes>::Stored;
  using typename Widened<kBytes>::Wide;
  using typename Widened<kBytes>::Bits;

  static Wide widen(Stored stored) {
    const Bits word = __builtin_convertvector(stored, Bits) << 16;
    const Bits twice = word + word;
    const Wide normal = bits_as<Wide>((twice >> 4) + 0x70000000U) * 0x1p-112F;
    const Wide subnormal = bits_as<Wide>((twice >> 17) | 0x3F000000U) - 0.5F;
    const Bits magnitude = twice < (1U << 27) ? bits_as<Bits>(subnormal) : bits_as<Bits>(normal);
    return bits_as<Wide>(magnitude | (word & 0x80000000U));
  }

  // Adding a power of two that stands 13 bits above the last bit of the result rounds there.
  static Stored narrow(Wide wide) {
    const Bits bits = bits_as<Bits>(wide);
    const Bits twice = bits + bits;
    const Bits exponent = twice & 0xFF000000U;
    const Bits least = Bits{} + 0x71000000U;
    const Wide magnitude = bits_as<Wide>(bits & 0x7FFFFFFFU) * 0x1p112F * 0x1p-110F;
    const Wide anchor = bits_as<Wide>(((exponent < least ? least : exponent) >> 1) + 0x07800000U);
    const Bits rounded = bits_as<Bits>(anchor + magnitude);
    const Bits finite = ((rounded >> 13) & 0x7C00U) + (rounded & 0x0FFFU);
    const Bits nan = Bits{} + 0x7E00U;
    return __builtin_convertvector((wide == wide ? finite : nan) | ((bits >> 16) & 0x8000U), Stored);
  }
};

template <Reduction kOp, class Wide>
Wide combine(Wide a, Wide b) {
  if constexpr (kOp == Reduction::Sum) return a + b;
  const Wide chosen = kOp == Reduction::Min ? (a < b ? a : b) : (a > b ? a : b);
  return a == a ? chosen : a;  // if b is a NaN, it is chosen already
}

template <class Format, Reduction kOp>
class Tree {
 public:
  explicit Tree(const Operands& operands) : operands_(operands) {}

  void run() {
    for (at_ = 0; at_ < operands_.count; at_ += kBlock) {
      count_ = operands_.count - at_ < kBlock ? operands_.count - at_ : kBlock;
      reduce(0, operands_.num_inputs, Outputs{operands_, at_});
    }
  }

 private:
  using Wide = typename Format::Wide;
  using Stored = typename Format::Stored;
  static constexpr std::size_t kLanes = Format::kLanes;
  static constexpr std::size_t kGroups =
      2048 / sizeof(Wide);  // a block for each level of the tree stays in the L1 cache
  static constexpr std::size_t kBlock = kGroups * kLanes;

  // Where a group of `lanes` numbers at `i` comes from, and where it goes.
  struct Input {
    const std::byte* from;

    Wide get(std::size_t i, std::size_t lanes) const {
      Stored stored{};
      std::memcpy(&stored, from + i * Format::kSize, lanes * Format::kSize);
      return Format::widen(stored);
    }
  };

  struct Block {
    Wide* groups;

    Wide get(std::size_t i, std::size_t) const { return groups[i / kLanes]; }
    void put(std::size_t i, std::size_t, Wide value) const { groups[i / kLanes] = value; }
  };

  template <class Source>
  struct Pair {
    Source left;
    Source right;

    Wide get(std::size_t i, std::size_t lanes) const { return combine<kOp>(left.get(i, lanes), right.get(i, lanes)); }
  };

  struct Outputs {
    const Operands& operands;
    std::size_t at;

    void put(std::size_t i, std::size_t lanes, Wide value) const {
      if (operands.divisor != 1) value = value / static_cast<typename Format::Lane>(operands.divisor);
      const Stored stored = Format::narrow(value);
      for (std::size_t k = 0; k < operands.num_outputs; ++k) {
        std::memcpy(operands.outputs[k] + (at + i) * Format::kSize, &stored, lanes * Format::kSize);
      }
    }
  };

  template <class Sink>
  void reduce(std::size_t first, std::size_t n, Sink sink) {
    if (n == 1) return write(input(first), sink);
    if (n == 2) return write(Pair<Input>{input(first), input(first + 1)}, sink);
    std::size_t half = 2;
    while (half * 2 < n) half *= 2;
    Wide left[kGroups];
    Wide right[kGroups];
    reduce(first, half, Block{left});
    reduce(first + half, n - half, Block{right});
    write(Pair<Block>{{left}, {right}}, sink);
  }

  template <class Source, class Sink>
  void write(Source source, Sink sink) {
    std::size_t i = 0;
    for (; i + kLanes <= count_; i += kLanes) sink.put(i, kLanes, source.get(i, kLanes));
    if (i < count_) sink.put(i, count_ - i, source.get(i, count_ - i));
  }

  Input input(std::size_t rank) const { return {operands_.inputs[rank] + at_ * Format::kSize}; }

  const Operands& operands_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
};

template <class Format>
void reduce_format(const Operands& operands) {
  switch (operands.op) {
    case Reduction::Sum: return Tree<Format, Reduction::Sum>(operands).run();
    case Reduction::Min: return Tree<Format, Reduction::Min>(operands).run();
    case Reduction::Max: return Tree<Format, Reduction::Max>(operands).run();
  }
}

// Integers wrap, so they are summed without a sign.
template <class Signed, class Unsigned>
void reduce_integers(const Operands& operands) {
  if (operands.op == Reduction::Sum) return Tree<Unsigned, Reduction::Sum>(operands).run();
  reduce_format<Signed>(operands);
}

template <std::size_t kBytes>
void reduce_vectors(const Operands& operands) {
  switch (operands.type) {
    case ElementType::Float: return reduce_format<Same<float, kBytes>>(operands);
    case ElementType::Double: return reduce_format<Same<double, kBytes>>(operands);
    case ElementType::Half: return reduce_format<Half<kBytes>>(operands);
    case ElementType::BFloat16: return reduce_format<BFloat16<kBytes>>(operands);
    case ElementType::Int: return reduce_integers<Same<std::int32_t, kBytes>, Same<std::uint32_t, kBytes>>(operands);
    case ElementType::Long: return reduce_integers<Same<std::int64_t, kBytes>, Same<std::uint64_t, kBytes>>(operands);
    case ElementType::Byte: return reduce_format<Same<std::uint8_t, kBytes>>(operands);
  }
}

}  // namespace
}  // namespace tandem
