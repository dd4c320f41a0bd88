#include "comm/shm/variants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

// The scalar reference; 16-bit conversions follow their definition.
template <class T>
struct Stored {
  using Number = T;
  using Bits = T;
  static T decode(T bits) { return bits; }
  static T encode(T number) { return number; }
};

template <int kFractionBits, int kExponentBits>
struct Small {
  using Number = float;
  using Bits = std::uint16_t;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;

  static float decode(Bits bits) {
    const int magnitude = bits & 0x7FFF;
    const int exponent = magnitude >> kFractionBits;
    const int fraction = magnitude & ((1 << kFractionBits) - 1);
    const int hidden = exponent == 0 ? 0 : 1 << kFractionBits;
    double number = std::ldexp(fraction + hidden, std::max(exponent, 1) - kBias - kFractionBits);
    if (magnitude >= kInfinity) number = magnitude > kInfinity ? NAN : INFINITY;
    return static_cast<float>((bits & 0x8000) != 0 ? -number : number);
  }

  static Bits encode(float number) {
    int magnitude = kInfinity;
    if (std::isnan(number)) magnitude = kInfinity + 1;
    if (std::isfinite(number)) {
      const int exponent = number == 0 ? 1 - kBias : std::max(std::ilogb(number), 1 - kBias);
      const double units = std::nearbyint(std::ldexp(std::abs(double{number}), kFractionBits - exponent));
      magnitude = std::min(((exponent + kBias - 1) << kFractionBits) + static_cast<int>(units), kInfinity);
    }
    return static_cast<Bits>(magnitude | (std::signbit(number) ? 0x8000 : 0));
  }
};
using HalfBits = Small<10, 5>;
using BFloat16Bits = Small<7, 8>;

template <class T>
T combine(ElementOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (op == ElementOp::Sum) return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    if (op == ElementOp::Sum) return a + b;
    if (std::isnan(a) || std::isnan(b)) return NAN;
  }
  return (op == ElementOp::Min ? a < b : a > b) ? a : b;
}

template <class T>
T tree(ElementOp op, std::span<const T> ranks) {
  if (ranks.size() == 1) return ranks[0];
  const std::size_t half = std::bit_floor(ranks.size() - 1);
  return combine(op, tree(op, ranks.first(half)), tree(op, ranks.subspan(half)));
}

template <class Type>
using Element = typename Type::Bits;
template <class Type>
using Buffers = std::vector<std::vector<Element<Type>>>;

template <class Type>
Element<Type> reference(ElementOp op, double divisor, const Buffers<Type>& ranks, std::size_t at) {
  using Number = typename Type::Number;
  std::vector<Number> numbers;
  for (const auto& rank : ranks) numbers.push_back(Type::decode(rank[at]));
  const Number result = tree<Number>(op, numbers);
  return Type::encode(static_cast<Number>(result / static_cast<Number>(divisor)));
}

// Bit-equal, but any NaN equals any other.
template <class Type>
bool is_same(Element<Type> a, Element<Type> b) {
  const auto x = Type::decode(a);
  const auto y = Type::decode(b);
  if constexpr (std::is_integral_v<typename Type::Number>) return x == y;
  return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
}

template <class Type>
bool all_same(const std::vector<Element<Type>>& a, const std::vector<Element<Type>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same<Type>);
}

// Numbers whose sums are rounded, mixed with random bit patterns.
template <class Type>
Element<Type> any_element(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<typename Type::Number>) {
    const double mantissa = static_cast<double>(random() % 2'000'001) - 1'000'000;
    const int exponent = static_cast<int>(random() % 9) - 20;
    if (random() % 16 != 0) return Type::encode(static_cast<typename Type::Number>(std::ldexp(mantissa, exponent)));
  }
  const std::uint64_t bits = random();
  Element<Type> element{};
  std::memcpy(&element, &bits, sizeof(element));
  return element;
}

template <class Type>
Buffers<Type> any_buffers(std::size_t num_ranks, std::size_t count) {
  std::mt19937_64 random(num_ranks * 10'000 + count);
  Buffers<Type> ranks(num_ranks, std::vector<Element<Type>>(count));
  for (auto& rank : ranks) {
    for (auto& element : rank) element = any_element<Type>(random);
  }
  return ranks;
}

// Reduces into rank 0 and into an unaligned buffer. Nothing else may change.
template <class Type>
bool is_reference(const Variant& variant, ElementType type, ElementOp op, double divisor, Buffers<Type> ranks) {
  const std::size_t count = ranks[0].size();
  const Element<Type> untouched{77};
  std::vector<Element<Type>> other(count + 2, untouched);
  std::vector<Element<Type>> expected_other(1, untouched);
  for (std::size_t i = 0; i < count; ++i) expected_other.push_back(reference<Type>(op, divisor, ranks, i));
  Buffers<Type> expected = ranks;
  expected[0].assign(expected_other.begin() + 1, expected_other.end());
  expected_other.push_back(untouched);

  std::vector<const std::byte*> inputs;
  for (auto& rank : ranks) inputs.push_back(reinterpret_cast<const std::byte*>(rank.data()));
  const std::vector<std::byte*> outputs{reinterpret_cast<std::byte*>(ranks[0].data()),
                                        reinterpret_cast<std::byte*>(other.data() + 1)};
  variant.reduce({type, op, divisor, inputs.data(), inputs.size(), outputs.data(), outputs.size(), count});
  return all_same<Type>(other, expected_other) &&
         std::equal(ranks.begin(), ranks.end(), expected.begin(), all_same<Type>);
}

template <class Type>
void expect_reference(const Variant& variant, ElementType type, std::size_t num_ranks, std::size_t count) {
  SCOPED_TRACE(str(variant.name, ", ", num_ranks, " ranks, ", count, " elements"));
  const double divisor = std::is_floating_point_v<typename Type::Number> ? static_cast<double>(num_ranks) : 1;
  const Buffers<Type> ranks = any_buffers<Type>(num_ranks, count);
  EXPECT_TRUE(is_reference<Type>(variant, type, ElementOp::Sum, divisor, ranks));
  EXPECT_TRUE(is_reference<Type>(variant, type, ElementOp::Min, 1, ranks));
  EXPECT_TRUE(is_reference<Type>(variant, type, ElementOp::Max, 1, ranks));
}

template <class Type>
void expect_reference_for_all_lengths(ElementType type) {
  for (const Variant& variant : variants()) {
    for (const std::size_t num_ranks : {1U, 2U, 3U, 4U, 7U}) {
      for (std::size_t count = 0; count <= 67; ++count) expect_reference<Type>(variant, type, num_ranks, count);
      expect_reference<Type>(variant, type, num_ranks, 5'003);  // several blocks
    }
  }
}

TEST(Variants, ReduceFloatsAsTheReference) { expect_reference_for_all_lengths<Stored<float>>(ElementType::Float); }
TEST(Variants, ReduceDoublesAsTheReference) { expect_reference_for_all_lengths<Stored<double>>(ElementType::Double); }
TEST(Variants, ReduceHalvesAsTheReference) { expect_reference_for_all_lengths<HalfBits>(ElementType::Half); }
TEST(Variants, ReduceBFloat16AsTheReference) { expect_reference_for_all_lengths<BFloat16Bits>(ElementType::BFloat16); }
TEST(Variants, ReduceIntsAsTheReference) { expect_reference_for_all_lengths<Stored<std::int32_t>>(ElementType::Int); }
TEST(Variants, ReduceLongsAsTheReference) { expect_reference_for_all_lengths<Stored<std::int64_t>>(ElementType::Long); }
TEST(Variants, ReduceBytesAsTheReference) { expect_reference_for_all_lengths<Stored<std::uint8_t>>(ElementType::Byte); }

// With one rank each number is unchanged; divided by 3, most are rounded.
template <class Type>
void expect_reference_for_all_bits(ElementType type) {
  Buffers<Type> ranks(1, std::vector<std::uint16_t>(65'536));
  std::iota(ranks[0].begin(), ranks[0].end(), std::uint16_t{0});
  std::vector<std::uint16_t> alone = ranks[0];
  for (std::uint16_t& bits : alone) bits = Type::encode(Type::decode(bits));
  EXPECT_TRUE(all_same<Type>(alone, ranks[0]));
  for (const Variant& variant : variants()) {
    EXPECT_TRUE(is_reference<Type>(variant, type, ElementOp::Sum, 1, ranks) &&
                is_reference<Type>(variant, type, ElementOp::Sum, 3, ranks))
        << variant.name;
  }
}

TEST(Variants, ConvertEveryHalf) { expect_reference_for_all_bits<HalfBits>(ElementType::Half); }
TEST(Variants, ConvertEveryBFloat16) { expect_reference_for_all_bits<BFloat16Bits>(ElementType::BFloat16); }

TEST(Variants, EndWithThePlainOne) { EXPECT_EQ(variants().back().name, "plain"); }

}  // namespace
}  // namespace tandem
