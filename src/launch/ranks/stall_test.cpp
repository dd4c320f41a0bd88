#include "launch/ranks/stall.h"

#include <gtest/gtest.h>

#include <functional>

#include "launch/facts_test.h"

namespace tandem {
namespace {

using std::chrono::seconds;

constexpr std::chrono::milliseconds kLimit = std::chrono::minutes(5);

// Calls look() every 30 s from 0 to `end`, and returns the stalls with their times.
struct Said {
  int second;
  Stall stall;
};
using Samples = std::function<std::vector<StallSample>(int second)>;

std::vector<Said> watch(int end, const Samples& samples) {
  StallWatch stall_watch(kLimit);
  const StallWatch::Time start = StallWatch::Time(seconds(1000));
  std::vector<Said> said;
  for (int second = 0; second <= end; second += 30) {
    if (auto stall = stall_watch.look(samples(second), start + seconds(second))) said.push_back({second, *stall});
  }
  return said;
}

StallSample sleeping(int rank) { return {.rank = rank, .state = 'S', .pid = 100 + rank}; }
StallSample computing(int rank, int second) {
  return {.rank = rank, .state = 'R', .cpu_seconds = static_cast<double>(second), .pid = 100 + rank};
}

TEST(StallWatch, SaysOnceThatNoRankDoesAnything) {
  const auto said = watch(3000, [](int) { return std::vector{sleeping(0), sleeping(1)}; });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].second, 300);
  EXPECT_EQ(said[0].stall.ranks, (std::vector{0, 1}));
  EXPECT_EQ(lacks(said[0].stall.text, {"no rank", "for 5m"}), "");
}

TEST(StallWatch, TakesOutputOrWorkOfOneRankForLife) {
  const auto writes = [](int second) {
    StallSample writer = sleeping(1);
    writer.output_bytes = static_cast<std::uint64_t>(second / 240);
    return std::vector{sleeping(0), writer};
  };
  EXPECT_TRUE(watch(3000, writes).empty());
  const auto works = [](int second) {
    StallSample worker = sleeping(1);
    worker.cpu_seconds = 0.01 * second;
    return std::vector{sleeping(0), worker};
  };
  EXPECT_TRUE(watch(3000, works).empty());
}

TEST(StallWatch, TakesLessThanOnePercentOfACoreForNothing) {
  const auto said = watch(3000, [](int second) {
    StallSample dozing = sleeping(0);
    dozing.cpu_seconds = 0.009 * second;
    return std::vector{dozing};
  });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].second, 300);
}

TEST(StallWatch, SpeaksAgainAfterThingsHaveMoved) {
  const auto said = watch(1500, [](int second) {
    StallSample rank = sleeping(0);
    rank.output_bytes = second < 600 ? 0 : 1;
    return std::vector{rank};
  });
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].second, 300);
  EXPECT_EQ(said[1].second, 900);
}

TEST(StallWatch, NamesStoppedRanksAndHowToLetThemGoOn) {
  const auto said = watch(3000, [](int second) {
    StallSample stopped = sleeping(2);
    if (second >= 60) stopped.state = 'T';
    return std::vector{computing(0, second), sleeping(1), stopped};
  });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].second, 330);  // it last ran at 30
  EXPECT_EQ(said[0].stall.ranks, std::vector{2});
  EXPECT_EQ(lacks(said[0].stall.text, {"rank 2", "SIGSTOP", "5m", "kill -CONT 102"}), "");

  const auto both = watch(300, [](int) {
    std::vector ranks{sleeping(0), sleeping(1)};
    for (StallSample& rank : ranks) rank.state = 'T';
    return ranks;
  });
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(lacks(both[0].stall.text, {"ranks 0, 1", "SIGSTOP", "5m", "kill -CONT 100 101"}), "");
}

TEST(StallWatch, NamesTheOneIdleRankWhileAllOthersSpin) {
  const auto said = watch(3000, [](int second) {
    StallSample idle = sleeping(2);
    idle.doing = "sleeping in read";
    return std::vector{computing(0, second), computing(1, second), idle};
  });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].second, 300);
  EXPECT_EQ(said[0].stall.ranks, std::vector{2});
  EXPECT_EQ(lacks(said[0].stall.text, {"rank 2", "idle for 5m", "sleeping in read", "or wait for it"}), "");
}

TEST(StallWatch, NamesTheIdleOneWhereTheOthersShareACore) {
  const auto said = watch(600, [](int second) {
    const bool is_on = second / 30 % 3 != 0;
    return std::vector{computing(0, is_on ? second / 3 : (second - 30) / 3), sleeping(1), computing(2, second / 3)};
  });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].stall.ranks, std::vector{1});
}

TEST(StallWatch, BlamesNobodyWhileAnotherRankWritesOrHardlyWorks) {
  EXPECT_TRUE(watch(3000, [](int second) {
                StallSample writer = computing(1, second);
                writer.output_bytes = static_cast<std::uint64_t>(second);
                return std::vector{computing(0, second), writer, sleeping(2)};
              }).empty());
  EXPECT_TRUE(watch(3000, [](int second) {
                return std::vector{computing(0, second), computing(1, second / 20), sleeping(2)};
              }).empty());
}

TEST(StallWatch, BeginsAnewWithARankThatWasStartedAgain) {
  const auto said = watch(600, [](int second) {
    StallSample rank = sleeping(0);
    if (second >= 240) rank.pid = 500;
    return std::vector{rank};
  });
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].second, 540);
}

TEST(StallWatch, HasNothingToSayOfNoRanks) {
  EXPECT_TRUE(watch(3000, [](int) { return std::vector<StallSample>(); }).empty());
}

}  // namespace
}  // namespace tandem
