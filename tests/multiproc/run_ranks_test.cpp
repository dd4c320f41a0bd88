#include "multiproc/run_ranks.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(RunRanks, GivesEveryProcessItsOwnRank) {
  const auto ends = run_ranks_to_end(
      3, [](const World& world) { std::printf("I am %d of %d, local %d\n", world.rank, world.size, world.local_rank); },
      60s);
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_NE(ends[0].output.find("I am 0 of 3, local 0"), std::string::npos) << ends[0].output;
  EXPECT_NE(ends[1].output.find("I am 1 of 3, local 1"), std::string::npos) << ends[1].output;
  EXPECT_NE(ends[2].output.find("I am 2 of 3, local 2"), std::string::npos) << ends[2].output;
  EXPECT_EQ(failures(ends), "");
}

TEST(RunRanks, ReportsAFailedExpectationOfAnyRankWithItsText) {
  const auto ends = run_ranks_to_end(
      2, [](const World& world) { EXPECT_LT(world.rank, 1) << "too high"; }, 60s);
  const std::string text = failures(ends);
  EXPECT_EQ(text.find("rank 0 of 2"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 of 2: exit code 1"), std::string::npos) << text;
  EXPECT_NE(text.find("too high"), std::string::npos) << text;
}

TEST(RunRanks, ReportsAnErrorByItsExitCodeAndHint) {
  const auto ends = run_ranks_to_end(
      1, [](const World&) { fail(ErrorKind::Comm, "peer lost", "look there"); }, 60s);
  EXPECT_EQ(ends.at(0).status.code, 6);
  EXPECT_NE(ends.at(0).output.find("error: peer lost\nhint: look there"), std::string::npos);
}

TEST(RunRanks, ReportsTheSignalThatKilledARank) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        if (world.rank == 1) ::raise(SIGKILL);
      },
      60s);
  EXPECT_NE(failures(ends).find("rank 1 of 2: signal 9 (Killed)"), std::string::npos) << failures(ends);
}

TEST(RunRanks, KillsAndReportsARankThatHangs) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        while (world.rank == 0) ::pause();
      },
      3s);
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_TRUE(ends[0].out_of_time);
  EXPECT_FALSE(ends[1].out_of_time);
  EXPECT_NE(failures(ends).find("rank 0 of 2: still running at the limit"), std::string::npos) << failures(ends);
}

TEST(RunRanks, ReportsARankThatDidNotRunItsBody) {
  if (current_world().size > 1) return;  // a rank of this test exits before the call
  const auto ends = run_ranks_to_end(
      2, [](const World&) {}, 60s);
  EXPECT_NE(failures(ends).find("rank 1 of 2: ended without running its body"), std::string::npos) << failures(ends);
}

TEST(RunRanks, RunsEachCallOfATestOnItsOwn) {
  const auto first = run_ranks_to_end(
      1, [](const World&) { std::printf("first body\n"); }, 60s);
  const auto second = run_ranks_to_end(
      1, [](const World&) { std::printf("second body\n"); }, 60s);
  EXPECT_NE(first.at(0).output.find("first body"), std::string::npos);
  EXPECT_EQ(second.at(0).output.find("first body"), std::string::npos);
  EXPECT_NE(second.at(0).output.find("second body"), std::string::npos);
}

}  // namespace
}  // namespace tandem
