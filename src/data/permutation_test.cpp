#include "data/permutation.h"

#include <gtest/gtest.h>
#include <tandem/random_key.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;

Ids numbers_of(const Permutation& permutation) {
  Ids numbers;
  for (std::int64_t i = 0; i < permutation.size(); ++i) numbers.push_back(permutation[i]);
  return numbers;
}

// The literals were computed by a Python program from the formulas in the comments.
TEST(RandomKey, IsFixedForEver) {
  EXPECT_EQ(mix_bits(1234567), 6457827717110365317U);  // published with SplitMix64
  EXPECT_EQ(random_key(7, Draw::Sample, 2, 5), 17022184241320906437U);
}

TEST(Permutation, IsFixedForEver) {
  EXPECT_EQ(numbers_of({10, 1, 0}), (Ids{9, 4, 2, 8, 6, 5, 0, 7, 3, 1}));
  EXPECT_EQ(numbers_of({10, 1, 1}), (Ids{9, 0, 3, 4, 1, 5, 6, 2, 8, 7}));
  EXPECT_EQ(numbers_of({10, 2, 0}), (Ids{7, 1, 6, 5, 0, 4, 3, 9, 2, 8}));
  EXPECT_EQ(numbers_of({7, 0, 0}), (Ids{5, 0, 1, 4, 3, 6, 2}));
  EXPECT_EQ(numbers_of({3, 2, 0}), (Ids{1, 2, 0}));
  EXPECT_EQ(numbers_of({2, 0, 0}), (Ids{1, 0}));
  EXPECT_EQ(numbers_of({1, 5, 9}), (Ids{0}));
  EXPECT_EQ(numbers_of({0, 5, 9}), Ids{});
}

TEST(Permutation, ReachesTwoToThe62) {
  constexpr std::int64_t kSize = std::int64_t{1} << 62;
  const Permutation most(kSize, 42, 3);
  EXPECT_EQ(most[0], 3021992184318398268);
  EXPECT_EQ(most[1], 2419015591932830045);
  EXPECT_EQ(most[kSize - 1], 1183515504941449408);
  const Permutation odd(1'000'000'000'007, 42, 3);
  EXPECT_EQ(odd[0], 764965670791);
  EXPECT_EQ(odd[1], 623773126941);
  EXPECT_EQ(odd[1'000'000'000'006], 531839102352);
}

TEST(Permutation, HoldsEveryNumberOnce) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100, 127, 128, 129, 1000, 4097}) {
    Ids numbers = numbers_of({size, 11, 4});
    std::ranges::sort(numbers);
    Ids all(size);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(numbers, all) << size;
  }
}

// In 7000 epochs each of 7 numbers is expected 1000 times at each position, with a standard deviation of 29.
TEST(Permutation, PutsEveryNumberEverywhereEquallyOften) {
  std::array<std::array<int, 7>, 7> counts{};
  for (std::int64_t epoch = 0; epoch < 7000; ++epoch) {
    const Permutation permutation(7, 5, epoch);
    for (std::int64_t i = 0; i < 7; ++i) ++counts.at(i).at(permutation[i]);
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, 1000, 150);
  }
}

// All 24 orders of 4 numbers, each about 100 times in 2400 epochs.
TEST(Permutation, TakesEveryOrder) {
  std::map<Ids, int> counts;
  for (std::int64_t epoch = 0; epoch < 2400; ++epoch) ++counts[numbers_of({4, 5, epoch})];
  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 100, 50);
}

int count_equal(const Ids& a, const Ids& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 1 : 0;
  return count;
}

// By chance, 1 of 1000 positions is equal, and 2 of 999 pairs are neighbours.
TEST(Permutation, HasNothingInCommonWithOtherEpochsSeedsOrTheGivenOrder) {
  const Ids numbers = numbers_of({1000, 3, 0});
  EXPECT_LT(count_equal(numbers, numbers_of({1000, 3, 1})), 8);
  EXPECT_LT(count_equal(numbers, numbers_of({1000, 4, 0})), 8);
  int num_neighbours = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) num_neighbours += std::abs(numbers[i] - numbers[i - 1]) == 1 ? 1 : 0;
  EXPECT_LT(num_neighbours, 10);
}

TEST(Permutation, RefusesWhatIsNotInIt) {
  EXPECT_EQ(error_of([] { Permutation(-1, 0, 0); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([] { Permutation(5, 0, 0)[5]; }).kind(), ErrorKind::Internal);
  EXPECT_EQ(error_of([] { Permutation(5, 0, 0)[-1]; }).kind(), ErrorKind::Internal);
}

}  // namespace
}  // namespace tandem
