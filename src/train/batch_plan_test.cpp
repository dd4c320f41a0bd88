#include <gtest/gtest.h>
#include <tandem/run_options.h>

#include "base/error_test.h"

namespace tandem {
namespace {

std::string error(const BatchOptions& options, int num_ranks) {
  const Error error = error_of([&] { plan_batch(options, num_ranks); });
  return error.message() + " | " + error.hint();
}

// Guides 003 and 004: micro-batches of 16, accumulated 16 times on one GPU, 16 or 8 times on two.
TEST(BatchPlan, CountsWhatTheGuidesCount) {
  EXPECT_EQ(plan_batch({.batch_size = 16, .accumulate = 16}, 1).global_batch(), 256);
  EXPECT_EQ(plan_batch({.batch_size = 16, .accumulate = 16}, 2).global_batch(), 512);
  EXPECT_EQ(plan_batch({.batch_size = 16, .accumulate = 8}, 2).global_batch(), 256);
  EXPECT_EQ(plan_batch({.batch_size = 16, .accumulate = 8}, 2).text(),
            "256 samples a step = 16 a micro-batch x 8 micro-batches x 2 ranks");
}

TEST(BatchPlan, KeepsAGlobalBatchOnAnyNumberOfRanks) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    const BatchPlan plan = plan_batch({.batch_size = 16, .global_batch = 256}, num_ranks);
    EXPECT_EQ(plan.accumulate, 16 / num_ranks);
    EXPECT_EQ(plan.global_batch(), 256);
    EXPECT_FALSE(plan.is_exact);
  }
}

TEST(BatchPlan, NamesTheNearestGlobalBatchThatFits) {
  EXPECT_TRUE(says(error({.batch_size = 16, .global_batch = 250}, 2),
                   {"250", "16 x 2", " | ", "--global-batch 224 or 256", "--batch-size"}));
  EXPECT_TRUE(says(error({.batch_size = 16, .global_batch = 8}, 2),
                   {"8", "16 x 2", " | ", "--global-batch 32", "--batch-size"}));
}

TEST(BatchPlan, SplitsShardsOverRanks) {
  for (const int num_ranks : {1, 2, 4, 8}) {
    const BatchPlan plan = plan_batch({.batch_size = 4, .shards = 8}, num_ranks);
    EXPECT_EQ(plan.accumulate, 8 / num_ranks);
    EXPECT_EQ(plan.global_batch(), 32);
    EXPECT_TRUE(plan.is_exact);
  }
  EXPECT_EQ(plan_batch({.batch_size = 4, .shards = 6}, 3).accumulate, 2);
  EXPECT_EQ(plan_batch({.batch_size = 4, .shards = 7}, 1).accumulate, 7);
}

TEST(BatchPlan, RefusesShardsWhoseSumWouldDependOnTheRanks) {
  EXPECT_TRUE(says(error({.batch_size = 4, .shards = 6}, 2),
                   {"6 shards", "2 ranks", " | ", "1, 3, 6 ranks", "--shards 2", "power of two"}));
  EXPECT_TRUE(says(error({.batch_size = 4, .shards = 4}, 3),
                   {"4 shards", "3 ranks", " | ", "1, 2, 4 ranks", "--shards 3", "power of two"}));
}

TEST(BatchPlan, RefusesWhatContradictsItself) {
  EXPECT_TRUE(says(error({.accumulate = 2, .shards = 4}, 1), {"--accumulate", "--shards", " | ", "--accumulate"}));
  EXPECT_TRUE(
      says(error({.accumulate = 2, .global_batch = 4}, 1), {"--accumulate", "--global-batch", " | ", "--accumulate"}));
  EXPECT_TRUE(says(error({.batch_size = 4, .global_batch = 64, .shards = 8}, 2),
                   {"64", "8 shards of 4", " | ", "--global-batch", "32"}));
  EXPECT_TRUE(says(error({.batch_size = 0}, 1), {"batch-size is 0", " | ", "1"}));
  EXPECT_TRUE(says(error({.shards = -1}, 1), {"shards is -1", " | ", "1"}));
  EXPECT_TRUE(
      says(error({.batch_size = 100'000, .accumulate = 100'000}, 1), {"batch-size is 100000", "accumulate 100000"}));
  EXPECT_TRUE(says(error({.batch_size = 1'000'000'000, .shards = 2}, 1), {"batch-size is 1000000000", "shards 2"}));
  EXPECT_TRUE(says(error({.batch_size = 1, .shards = 999'999'999}, 2), {"999999999 shards", " | ", "use 1 ranks"}));
  EXPECT_TRUE(says(error({.batch_size = 1, .shards = 3 << 20}, 5), {"3145728 shards", " | ", "1, 3, 6, 12", "2 more"}));
}

TEST(BatchPlan, FitsAGlobalBatchThatWasOnlyProposed) {
  const auto fitting = [](std::int64_t batch_size, std::int64_t global_batch, int ranks) {
    return with_fitting_batch({.batch_size = batch_size, .global_batch = global_batch}, ranks).global_batch;
  };
  EXPECT_EQ(fitting(16, 256, 2), 256);
  EXPECT_EQ(fitting(16, 256, 3), 240);  // 5 x 48, nearer than 288
  EXPECT_EQ(fitting(24, 32, 1), 24);
  EXPECT_EQ(fitting(16, 32, 3), 48);  // at least one micro-batch a rank
  EXPECT_EQ(with_fitting_batch({.batch_size = 16}, 3).global_batch, std::nullopt);
}

}  // namespace
}  // namespace tandem
