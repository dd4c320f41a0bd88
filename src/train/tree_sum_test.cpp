#include "train/tree_sum.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

// The sum of a, b, c, ... written with brackets in the order of the additions.
std::string sum_of(int count) {
  const auto bracket = [](const std::string& a, const std::string& b) { return "(" + a + b + ")"; };
  TreeSum<std::string, decltype(bracket)> sum(bracket);
  for (int i = 0; i < count; ++i) sum.add(std::string(1, static_cast<char>('a' + i)));
  return sum.total();
}

TEST(TreeSum, AddsNeighboursFirst) {
  EXPECT_EQ(sum_of(1), "a");
  EXPECT_EQ(sum_of(2), "(ab)");
  EXPECT_EQ(sum_of(4), "((ab)(cd))");
  EXPECT_EQ(sum_of(8), "(((ab)(cd))((ef)(gh)))");
}

// As shm sums over ranks: the left side has the largest power of two below the number of values.
TEST(TreeSum, OfAnyCountHasAFullTreeOnTheLeft) {
  EXPECT_EQ(sum_of(3), "((ab)c)");
  EXPECT_EQ(sum_of(5), "(((ab)(cd))e)");
  EXPECT_EQ(sum_of(6), "(((ab)(cd))(ef))");
  EXPECT_EQ(sum_of(7), "(((ab)(cd))((ef)g))");
}

}  // namespace
}  // namespace tandem
