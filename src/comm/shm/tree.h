#pragma once

// The arithmetic of reduce(), for vectors of any width. Each instruction set has a file that includes this header after
// `#pragma GCC target`; the unnamed namespace gives each file its own copy.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "comm/shm/formats.h"
#include "comm/shm/variants.h"

namespace tandem {
namespace {

template <class Wide>
constexpr bool kHasNan = std::is_floating_point_v<std::remove_reference_t<decltype(std::declval<Wide&>()[0])>>;

template <ElementOp kOp, class Wide>
Wide combine(Wide a, Wide b) {
  if constexpr (kOp == ElementOp::Sum) return a + b;
  const Wide chosen = kOp == ElementOp::Min ? (a < b ? a : b) : (a > b ? a : b);
  if constexpr (!kHasNan<Wide>) return chosen;
  return a <= chosen || a >= chosen ? chosen : a + b;  // unordered: one is NaN, and so is the sum
}

template <ElementOp kOp, std::size_t kBytes>
EvenOdd<kBytes> combine(EvenOdd<kBytes> a, EvenOdd<kBytes> b) {
  return {combine<kOp>(a.even, b.even), combine<kOp>(a.odd, b.odd)};
}

template <class Wide, class Lane>
Wide divide(Wide value, Lane divisor) {
  return value / divisor;
}

template <std::size_t kBytes>
EvenOdd<kBytes> divide(EvenOdd<kBytes> value, float divisor) {
  return {value.even / divisor, value.odd / divisor};
}

template <class Format, ElementOp kOp>
class Tree {
 public:
  explicit Tree(const Operands& operands) : operands_(operands) {}

  void run() {
    const auto divisor = static_cast<Lane>(operands_.divisor);
    const std::size_t block = operands_.num_inputs > 2 ? kBlock : operands_.count;
    for (at_ = 0; at_ < operands_.count; at_ += block) {
      count_ = operands_.count - at_ < block ? operands_.count - at_ : block;
      reduce(0, operands_.num_inputs, Outputs{operands_.outputs, operands_.num_outputs, at_, divisor});
    }
  }

 private:
  using Wide = typename Format::Wide;
  using Stored = typename Format::Stored;
  using Lane = typename Format::Lane;
  static constexpr std::size_t kLanes = Format::kLanes;
  static constexpr std::size_t kGroups = 2048 / sizeof(Wide);  // the blocks of all levels fit into the L1 cache
  static constexpr std::size_t kBlock = kGroups * kLanes;

  // Sources and destinations of the `lanes` numbers at index `i`.
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

  // Holds copies: values behind a pointer would be reloaded after each store of bytes (aliasing).
  struct Outputs {
    std::byte* const* to;
    std::size_t num;
    std::size_t at;
    Lane divisor;

    void put(std::size_t i, std::size_t lanes, Wide value) const {
      if constexpr (kOp == ElementOp::Sum && std::is_floating_point_v<Lane>) {
        if (divisor != 1) value = divide(value, divisor);
      }
      const Stored stored = Format::narrow(value);
      for (std::size_t k = 0; k < num; ++k) {
        std::memcpy(to[k] + (at + i) * Format::kSize, &stored, lanes * Format::kSize);
      }
    }
  };

  template <class Sink>
  [[gnu::noinline]] void reduce(std::size_t first, std::size_t n, Sink sink) {
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
    const std::size_t count = count_;
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) sink.put(i, kLanes, source.get(i, kLanes));
    if (i < count) sink.put(i, count - i, source.get(i, count - i));
  }

  Input input(std::size_t rank) const { return {operands_.inputs[rank] + at_ * Format::kSize}; }

  const Operands& operands_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
};

template <class Format>
void reduce_format(const Operands& operands) {
  switch (operands.op) {
    case ElementOp::Sum: return Tree<Format, ElementOp::Sum>(operands).run();
    case ElementOp::Min: return Tree<Format, ElementOp::Min>(operands).run();
    case ElementOp::Max: return Tree<Format, ElementOp::Max>(operands).run();
  }
}

// Integers wrap: they are summed as unsigned.
template <class Signed, class Unsigned>
void reduce_integers(const Operands& operands) {
  if (operands.op == ElementOp::Sum) return Tree<Unsigned, ElementOp::Sum>(operands).run();
  reduce_format<Signed>(operands);
}

template <std::size_t kBytes, class Half>
void reduce_vectors(const Operands& operands) {
  switch (operands.type) {
    case ElementType::Float: return reduce_format<Same<float, kBytes>>(operands);
    case ElementType::Double: return reduce_format<Same<double, kBytes>>(operands);
    case ElementType::Half: return reduce_format<Half>(operands);
    case ElementType::BFloat16: return reduce_format<Widened<BFloat16Conversion<kBytes>, kBytes>>(operands);
    case ElementType::Int: return reduce_integers<Same<std::int32_t, kBytes>, Same<std::uint32_t, kBytes>>(operands);
    case ElementType::Long: return reduce_integers<Same<std::int64_t, kBytes>, Same<std::uint64_t, kBytes>>(operands);
    case ElementType::Byte: return reduce_format<Same<std::uint8_t, kBytes>>(operands);
  }
}

}  // namespace
}  // namespace tandem
