#include "comm/shm/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tandem {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One element per rank, reduced.
template <class T>
T reduced(ElementType type, ElementOp op, const std::vector<T>& ranks, double divisor = 1) {
  std::vector<const std::byte*> inputs;
  for (const T& element : ranks) inputs.push_back(reinterpret_cast<const std::byte*>(&element));
  T result{};
  auto* const output = reinterpret_cast<std::byte*>(&result);
  reduce(type, op, divisor, inputs, std::span(&output, 1), 1);
  return result;
}

float sum(const std::vector<float>& ranks, double divisor = 1) {
  return reduced(ElementType::Float, ElementOp::Sum, ranks, divisor);
}

using Bits = std::vector<std::uint16_t>;
int half_sum(const Bits& ranks, double divisor = 1) {
  return reduced(ElementType::Half, ElementOp::Sum, ranks, divisor);
}
int bfloat_sum(const Bits& ranks, double divisor = 1) {
  return reduced(ElementType::BFloat16, ElementOp::Sum, ranks, divisor);
}

bool is_half_nan(int bits) { return (bits & 0x7FFF) > 0x7C00; }
bool is_bfloat_nan(int bits) { return (bits & 0x7FFF) > 0x7F80; }

// 1e8F + 1 is 1e8F, so each of these sums depends on the order.
TEST(Reduce, AddsAlongATreeThatSplitsAtAPowerOfTwo) {
  EXPECT_EQ(sum({5}), 5);
  EXPECT_EQ(sum({2, 3}), 5);
  EXPECT_EQ(sum({1, 1e8F, -1e8F}), 0);
  EXPECT_EQ(sum({1e8F, -1e8F, 1}), 1);
  EXPECT_EQ(sum({1e8F, 1, -1e8F, 1}), 0);           // from left to right: 1
  EXPECT_EQ(sum({1e8F, 1, -1e8F, 1, 2, 3, 4}), 9);  // from left to right, or split into 3 and 4: 10
}

TEST(Reduce, DividesTheSumOnce) {
  EXPECT_EQ(sum({1, 2}, 2), 1.5F);
  EXPECT_EQ(sum({1, 4}, 3), 0x1.aaaaaap+0F);  // 5 * (1 / 3) would be the next float
  EXPECT_EQ(reduced(ElementType::Double, ElementOp::Sum, std::vector<double>{1e16, 1, 1}, 4), 2.5e15);
  EXPECT_EQ(reduced(ElementType::Double, ElementOp::Sum, std::vector<double>{1, 4}, 3), 0x1.aaaaaaaaaaaabp+0);
}

TEST(Reduce, RoundsABFloat16OnceToNearestEven) {
  EXPECT_EQ(bfloat_sum({0x4380, 0x3F80, 0x3F80}), 0x4381);  // 256 + 1 + 1 = 258; rounded in between it would be 256
  EXPECT_EQ(bfloat_sum({0x4380, 0x3F80}), 0x4380);          // 257 lies between 256 and 258
  EXPECT_EQ(bfloat_sum({0x4381, 0x3F80}), 0x4382);          // 259 lies between 258 and 260
  EXPECT_EQ(bfloat_sum({0x4380, 0x3F80}, 2), 0x4300);       // 257 / 2 = 128.5 lies between 128 and 129
  EXPECT_EQ(bfloat_sum({0xC380, 0xBF80, 0xBF80}), 0xC381);
}

TEST(Reduce, HandlesTheLimitsOfBFloat16) {
  EXPECT_EQ(bfloat_sum({0x7F7F, 0x7F7F}), 0x7F80);     // overflow
  EXPECT_EQ(bfloat_sum({0x7F7F, 0x7F7F}, 2), 0x7F80);  // the float sum overflows too
  EXPECT_EQ(bfloat_sum({0xFF80, 0x3F80}), 0xFF80);
  EXPECT_EQ(bfloat_sum({0x0001, 0x0001}), 0x0002);  // subnormal
  EXPECT_EQ(bfloat_sum({0x0001}, 2), 0x0000);
  EXPECT_EQ(bfloat_sum({0x0003}, 2), 0x0002);
  EXPECT_TRUE(is_bfloat_nan(bfloat_sum({0x7F80, 0xFF80})));
  EXPECT_TRUE(is_bfloat_nan(bfloat_sum({0xFFFF, 0x3F80})));
}

TEST(Reduce, RoundsAHalfOnceToNearestEven) {
  EXPECT_EQ(half_sum({0x6800, 0x3C00, 0x3C00}), 0x6801);  // 2048 + 1 + 1 = 2050; rounded in between it would be 2048
  EXPECT_EQ(half_sum({0x6800, 0x3C00}), 0x6800);          // 2049 lies between 2048 and 2050
  EXPECT_EQ(half_sum({0x6801, 0x3C00}), 0x6802);          // 2051 lies between 2050 and 2052
  EXPECT_EQ(half_sum({0xE800, 0xBC00, 0xBC00}), 0xE801);
}

TEST(Reduce, HandlesTheLimitsOfHalf) {
  EXPECT_EQ(half_sum({0x7BFF, 0x4B80}), 0x7BFF);     // 65504 + 15 is nearer to 65504
  EXPECT_EQ(half_sum({0x7BFF, 0x4C00}), 0x7C00);     // 65504 + 16 overflows
  EXPECT_EQ(half_sum({0x7BFF, 0x7BFF}, 2), 0x7BFF);  // the sum is computed in float
  EXPECT_EQ(half_sum({0xFC00, 0x3C00}), 0xFC00);
  EXPECT_EQ(half_sum({0x0001, 0x0001}), 0x0002);  // subnormal
  EXPECT_EQ(half_sum({0x03FF, 0x0001}), 0x0400);
  EXPECT_EQ(half_sum({0x0001}, 2), 0x0000);
  EXPECT_EQ(half_sum({0x0003}, 2), 0x0002);
  EXPECT_TRUE(is_half_nan(half_sum({0x7C00, 0xFC00})));
  EXPECT_TRUE(is_half_nan(half_sum({0xFFFF, 0x3C00})));
}

// For a NaN on any of three ranks.
int num_nans(ElementOp op) {
  int count = 0;
  for (const std::vector<float>& ranks : {std::vector{kNan, 1.0F, 2.0F}, {1.0F, kNan, 2.0F}, {1.0F, 2.0F, kNan}}) {
    if (std::isnan(reduced(ElementType::Float, op, ranks))) ++count;
  }
  return count;
}

TEST(Reduce, PropagatesNanInMinAndMax) {
  EXPECT_EQ(num_nans(ElementOp::Min), 3);
  EXPECT_EQ(num_nans(ElementOp::Max), 3);
}

TEST(Reduce, OrdersInfinitiesAndSigns) {
  EXPECT_EQ(reduced(ElementType::Float, ElementOp::Min, std::vector{1.0F, -kInfinity, 2.0F}), -kInfinity);
  EXPECT_EQ(reduced(ElementType::Float, ElementOp::Max, std::vector{1.0F, -kInfinity, 2.0F}), 2);
  EXPECT_EQ(reduced(ElementType::Half, ElementOp::Min, Bits{0x3C00, 0xBC00, 0x4000}), 0xBC00);
  EXPECT_EQ(reduced(ElementType::BFloat16, ElementOp::Max, Bits{0x3F80, 0xBF80, 0x4000}), 0x4000);
}

TEST(Reduce, WrapsIntegersAndRespectsSigns) {
  using Ints = std::vector<std::int32_t>;
  using Longs = std::vector<std::int64_t>;
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(reduced(ElementType::Int, ElementOp::Sum, Ints{2'147'483'647, 2}), -2'147'483'647);
  EXPECT_EQ(reduced(ElementType::Long, ElementOp::Sum, Longs{std::numeric_limits<std::int64_t>::max(), 1}),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reduced(ElementType::Long, ElementOp::Sum, Longs{9'007'199'254'740'993, 1, 1}), 9'007'199'254'740'995);
  EXPECT_EQ(reduced(ElementType::Byte, ElementOp::Sum, Bytes{200, 100}), 44);
  EXPECT_EQ(reduced(ElementType::Int, ElementOp::Min, Ints{1, -1, 2}), -1);
  EXPECT_EQ(reduced(ElementType::Long, ElementOp::Max, Longs{-3, -1, -2}), -1);
  EXPECT_EQ(reduced(ElementType::Byte, ElementOp::Max, Bytes{100, 200, 50}), 200);
  EXPECT_EQ(reduced(ElementType::Byte, ElementOp::Min, Bytes{100, 200, 50}), 50);
}

TEST(Reduce, WritesAllRanksInPlace) {
  std::array<std::array<float, 3>, 2> ranks{{{1, 2, 3}, {10, 20, 30}}};
  const std::array<std::byte*, 2> outputs{reinterpret_cast<std::byte*>(ranks[0].data()),
                                          reinterpret_cast<std::byte*>(ranks[1].data())};
  const std::array<const std::byte*, 2> inputs{outputs[0], outputs[1]};
  reduce(ElementType::Float, ElementOp::Sum, 1, inputs, outputs, 2);
  EXPECT_EQ(ranks[0], (std::array<float, 3>{11, 22, 3}));
  EXPECT_EQ(ranks[1], (std::array<float, 3>{11, 22, 30}));
}

TEST(ElementSize, IsTheSizeInMemory) {
  EXPECT_EQ(element_size(ElementType::Float), 4U);
  EXPECT_EQ(element_size(ElementType::Double), 8U);
  EXPECT_EQ(element_size(ElementType::Half), 2U);
  EXPECT_EQ(element_size(ElementType::BFloat16), 2U);
  EXPECT_EQ(element_size(ElementType::Int), 4U);
  EXPECT_EQ(element_size(ElementType::Long), 8U);
  EXPECT_EQ(element_size(ElementType::Byte), 1U);
}

}  // namespace
}  // namespace tandem
