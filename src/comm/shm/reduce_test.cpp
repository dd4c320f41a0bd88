#include "comm/shm/reduce.h"

#include <gtest/gtest.h>

#include <vector>

#include "comm/shm/variants.h"

namespace tandem {
namespace {

// The sum of one float per rank.
float sum(const std::vector<float>& ranks, double divisor = 1) {
  std::vector<const std::byte*> inputs;
  for (const float& rank : ranks) inputs.push_back(reinterpret_cast<const std::byte*>(&rank));
  float result = 0;
  std::byte* const output = reinterpret_cast<std::byte*>(&result);
  reduce(ElementType::Float, Reduction::Sum, divisor, inputs, std::span(&output, 1), 1);
  return result;
}

TEST(Reduce, AddsRanksAlongABalancedTree) {
  EXPECT_EQ(sum({5}), 5);
  EXPECT_EQ(sum({1e8F, 1}), 1e8F);
  EXPECT_EQ(sum({1e8F, -1e8F, 1}), 1);
  EXPECT_EQ(sum({1, 1e8F, -1e8F}), 0);
  EXPECT_EQ(sum({1e8F, 1, -1e8F, 1}), 0);  // (1e8 + 1) + (-1e8 + 1); from left to right it would be 1
  EXPECT_EQ(sum({1e8F, 1, -1e8F, 1}, 4), 0);
}

}  // namespace
}  // namespace tandem
