#include <gtest/gtest.h>
#include <tandem/sampler.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "data/permutation.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;

// As in text: many short samples, few long ones, of 1 to 400 tokens.
Ids text_lengths(std::int64_t count) {
  const Permutation ranks(count, 77, 0);
  Ids lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(1 + 399 * ranks[i] * ranks[i] / (count * count));
  return lengths;
}

// Padding that batches need to bring every sample to the length of the longest one.
std::int64_t count_padding(const Ids& lengths, std::span<const std::int64_t> order, std::size_t batch_size) {
  std::int64_t padding = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    const auto batch = order.subspan(begin, std::min(batch_size, order.size() - begin));
    std::int64_t longest = 0;
    for (const std::int64_t id : batch) longest = std::max(longest, lengths[id]);
    for (const std::int64_t id : batch) padding += longest - lengths[id];
  }
  return padding;
}

TEST(LengthOrder, IsSortedInPoolsAndShuffledByBatches) {
  // Two pools of two batches of two, and a ninth sample that fills no batch. In each pool the shorter half is a batch.
  const Ids lengths{9, 1, 5, 9, 1, 5, 20, 7, 7};
  const Ids order = length_order(lengths, {.batch_size = 2, .pool = 10}, 3, 0);
  const Permutation shuffled(9, 3, 0);
  EXPECT_EQ(order.back(), shuffled[8]);
  std::multiset<std::multiset<std::int64_t>> batches, expected;
  for (const std::int64_t begin : {0, 4}) {
    Ids pool;
    for (std::int64_t i = begin; i < begin + 4; ++i) pool.push_back(lengths[shuffled[i]]);
    std::ranges::sort(pool);
    expected.insert({pool[0], pool[1]});
    expected.insert({pool[2], pool[3]});
  }
  for (std::size_t i = 0; i < 8; i += 2) batches.insert({lengths[order[i]], lengths[order[i + 1]]});
  EXPECT_EQ(batches, expected);
}

// Each batch as the set of its samples. Of a single sorted pool they would be the same in every epoch.
std::set<std::set<std::int64_t>> batches_of(const Ids& order, std::int64_t batch_size) {
  std::set<std::set<std::int64_t>> batches;
  for (auto begin = order.begin(); order.end() - begin >= batch_size; begin += batch_size) {
    batches.insert({begin, begin + batch_size});
  }
  return batches;
}

TEST(LengthOrder, MakesOtherBatchesInEachEpochHoweverFew) {
  for (const std::int64_t num_batches : {2, 3, 7, 20, 49}) {
    const Ids lengths = text_lengths(16 * num_batches + 5);
    const auto first = batches_of(length_order(lengths, {.batch_size = 16}, 3, 0), 16);
    const auto second = batches_of(length_order(lengths, {.batch_size = 16}, 3, 1), 16);
    EXPECT_EQ(std::ssize(first), num_batches);
    for (const auto& batch : second) EXPECT_FALSE(first.contains(batch)) << num_batches << " batches";
  }
}

// Otherwise a sampler that drops them would never show the longest samples.
TEST(LengthOrder, LeavesOverSamplesOfAnyLength) {
  const Ids lengths = text_lengths(100);
  std::set<std::int64_t> left_over;
  for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
    const Ids order = length_order(lengths, {.batch_size = 30}, 3, epoch);
    left_over.insert(order.end() - 10, order.end());
  }
  EXPECT_GT(left_over.size(), 95U);  // of 100, each of which stays in with a probability of 0.9 an epoch
}

TEST(LengthOrder, HoldsEverySampleOnce) {
  for (const std::int64_t size : {0, 1, 5, 64, 1003}) {
    for (const std::int64_t pool : {std::int64_t{1}, std::int64_t{3}, INT64_MAX}) {
      Ids order = length_order(text_lengths(size), {.batch_size = 8, .pool = pool}, 3, 1);
      std::ranges::sort(order);
      Ids all(size);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(order, all) << size << " samples, pools of " << pool;
    }
  }
}

// The counts were computed by a Python program: per token, a plain shuffle adds 1.66 of padding, this order 0.029.
TEST(LengthOrder, WastesLittlePadding) {
  const Ids lengths = text_lengths(10'000);
  const Permutation permutation(10'000, 3, 0);
  Ids shuffled;
  for (std::int64_t i = 0; i < 10'000; ++i) shuffled.push_back(permutation[i]);
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 1'334'907);
  EXPECT_EQ(count_padding(lengths, shuffled, 16), 2'222'597);
  EXPECT_EQ(count_padding(lengths, length_order(lengths, {.batch_size = 16}, 3, 0), 16), 38'693);
}

// If batches were sorted by length, every next one would be longer.
TEST(LengthOrder, MixesLongAndShortBatches) {
  const Ids lengths = text_lengths(10'000);
  const Ids order = length_order(lengths, {.batch_size = 16}, 3, 0);
  int num_rises = 0;
  for (std::size_t i = 16; i < order.size(); i += 16) num_rises += lengths[order[i]] > lengths[order[i - 16]] ? 1 : 0;
  EXPECT_NEAR(num_rises, 312, 40);
}

TEST(LengthOrder, IsAnotherInEachEpochAndTheSameWhenAskedAgain) {
  const Ids lengths = text_lengths(1000);
  const LengthOrderOptions options{.batch_size = 4, .pool = 20};
  EXPECT_EQ(length_order(lengths, options, 3, 0), length_order(lengths, options, 3, 0));
  EXPECT_NE(length_order(lengths, options, 3, 0), length_order(lengths, options, 3, 1));
  EXPECT_NE(length_order(lengths, options, 3, 0), length_order(lengths, options, 4, 0));
}

TEST(LengthOrder, ServesASampler) {
  const Ids lengths = text_lengths(50);
  const LengthOrderOptions options{.batch_size = 4, .pool = 5};
  Sampler sampler({.num_samples = 50, .batch_size = 4, .seed = 8}, {}, by_length(lengths, options));
  for (int step = 0; step < 12; ++step) sampler.next();
  const Ids second = length_order(lengths, options, 8, 1);
  EXPECT_EQ(sampler.next()[0].ids, Ids(second.begin(), second.begin() + 4));
}

TEST(LengthOrder, NeedsTheLengthOfEverySample) {
  const Error error = error_of([] { Sampler({.num_samples = 4}, {}, by_length({1, 2, 3}, {})); });
  EXPECT_EQ(missing_facts(error, ErrorKind::Data, {"3 lengths for 4 samples"}), "");
  EXPECT_EQ(error_of([] { length_order({}, {.batch_size = 0}, 0, 0); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([] { length_order({}, {.pool = 0}, 0, 0); }).kind(), ErrorKind::Config);
}

}  // namespace
}  // namespace tandem
