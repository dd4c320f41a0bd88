#include "ddp/bucket_plan.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using c10::ScalarType;

constexpr Bytes kNoCap{1 << 30};

TEST(BucketPlan, ClosesABucketWhenItHasReachedItsCap) {
  const std::vector<GradientSize> gradients(6, {.bytes = 10});
  const std::vector<std::size_t> order = {5, 4, 3, 2, 1, 0};
  EXPECT_EQ(plan_buckets(gradients, order, Bytes{10}, Bytes{25}), (BucketPlan{{5}, {4, 3, 2}, {1, 0}}));
  EXPECT_EQ(plan_buckets(gradients, order, Bytes{11}, Bytes{20}), (BucketPlan{{5, 4}, {3, 2}, {1, 0}}));
}

TEST(BucketPlan, PutsAGradientLargerThanTheCapIntoABucketThatItEnds) {
  const std::vector<GradientSize> gradients = {{.bytes = 1}, {.bytes = 1000}, {.bytes = 1}};
  const std::vector<std::size_t> order = {0, 1, 2};
  EXPECT_EQ(plan_buckets(gradients, order, Bytes{1}, Bytes{10}), (BucketPlan{{0}, {1}, {2}}));
}

TEST(BucketPlan, FollowsTheOrderItIsGiven) {
  const std::vector<GradientSize> gradients(4, {.bytes = 8});
  const std::vector<std::size_t> order = {2, 0, 3, 1};
  EXPECT_EQ(plan_buckets(gradients, order, Bytes{8}, kNoCap), (BucketPlan{{2}, {0, 3, 1}}));
}

TEST(BucketPlan, KeepsTypesApartAndOrdersBucketsByTheirLastGradient) {
  const std::vector<GradientSize> gradients = {{.bytes = 4, .type = ScalarType::Float},
                                               {.bytes = 2, .type = ScalarType::BFloat16},
                                               {.bytes = 4, .type = ScalarType::Float},
                                               {.bytes = 8, .type = ScalarType::Double},
                                               {.bytes = 2, .type = ScalarType::BFloat16}};
  const std::vector<std::size_t> order = {3, 0, 1, 2, 4};
  EXPECT_EQ(plan_buckets(gradients, order, kNoCap, kNoCap), (BucketPlan{{3}, {0, 2}, {1, 4}}));
  EXPECT_EQ(plan_buckets(gradients, order, Bytes{8}, Bytes{4}), (BucketPlan{{3}, {0}, {2}, {1, 4}}));
}

TEST(BucketPlan, PutsABucketThatStayedOpenBeforeOnesThatFillUpLater) {
  const std::vector<GradientSize> gradients = {{.bytes = 8, .type = ScalarType::Double}, {.bytes = 5}, {.bytes = 5}};
  const std::vector<std::size_t> order = {0, 1, 2};
  EXPECT_EQ(plan_buckets(gradients, order, Bytes{9}, Bytes{9}), (BucketPlan{{0}, {1, 2}}));
}

}  // namespace
}  // namespace tandem
