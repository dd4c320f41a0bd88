#include <gtest/gtest.h>

#include <vector>

#include "base/error_test.h"
#include "monitor/rank_times.h"

namespace tandem {
namespace {

using Ranks = std::vector<RankTimes>;

TEST(RankTimes, AreBalancedWhenNoRankNeedsATenthMore) {
  const Balance balance = balance_of(Ranks{{0.200, 0.005, 0.010}, {0.210, 0.002, 0.003}});
  EXPECT_FALSE(balance.straggler);
  EXPECT_NEAR(balance.share, 0.9835, 0.0001);
  EXPECT_TRUE(says(balance.text, {"no straggler", "205 ms to 212 ms", "3%"}));
}

TEST(RankTimes, NameTheStraggler) {
  const Balance balance =
      balance_of(Ranks{{0.310, 0.002, 0.100}, {0.412, 0, 0.001}, {0.300, 0, 0.112}, {0.318, 0, 0.094}});
  EXPECT_EQ(balance.straggler, 1);
  EXPECT_NEAR(balance.share, 0.8143, 0.0001);
  EXPECT_TRUE(says(balance.text, {"rank 1", "412 ms", "312 ms", "device"}));
}

TEST(RankTimes, SayThatDataIsTheReason) {
  const std::string text = balance_of(Ranks{{0.300, 0.090, 0}, {0.305, 0.005, 0.080}}).text;
  EXPECT_TRUE(says(text, {"rank 0", "390 ms", "310 ms", "rank 1", "--workers"}));
}

TEST(RankTimes, DrawTheLineAtATenth) {
  EXPECT_FALSE(balance_of(Ranks{{1.000, 0, 0}, {1.099, 0, 0}}).straggler);
  EXPECT_EQ(balance_of(Ranks{{1.000, 0, 0}, {1.101, 0, 0}}).straggler, 1);
}

TEST(RankTimes, OfLessThanAMillisecondAreNoise) {
  EXPECT_FALSE(balance_of(Ranks{{0.0005, 0, 0}, {0.0014, 0, 0}}).straggler);
  EXPECT_EQ(balance_of(Ranks{{0.0005, 0, 0}, {0.0016, 0, 0}}).straggler, 1);
}

// Seven quick ranks and a slow one: an average would hide it.
TEST(RankTimes, CompareWithTheMedianOfTheOthers) {
  Ranks ranks(8, {0.5, 0, 0});
  ranks[6].compute = 0.51;
  ranks[5].compute = 0.9;
  EXPECT_EQ(balance_of(ranks).straggler, 5);
}

TEST(RankTimes, OfOneRankOrOfNoTimeNameNobody) {
  EXPECT_EQ(balance_of(Ranks{{0.3, 0, 0}}).text, "");
  EXPECT_FALSE(balance_of(Ranks{{}, {}}).straggler);
  EXPECT_EQ(balance_of(Ranks{{}, {}}).share, 1);
  EXPECT_EQ(balance_of({}).share, 1);
}

}  // namespace
}  // namespace tandem
