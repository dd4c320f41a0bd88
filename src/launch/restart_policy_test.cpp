#include "launch/restart_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<long> pauses_after(RestartPolicy policy, const std::vector<milliseconds>& uptimes) {
  std::vector<long> pauses;
  for (std::size_t attempt = 0; attempt < uptimes.size(); ++attempt) {
    EXPECT_TRUE(policy.allows(static_cast<int>(attempt), uptimes[attempt], std::to_string(attempt)));
    pauses.push_back(policy.pause().count());
  }
  return pauses;
}

TEST(RestartPolicy, PausesLongerAfterEachEarlyFailureWhateverItsText) {
  const std::vector<milliseconds> uptimes(13, milliseconds(5));
  const std::vector<long> expected = {0, 100, 200, 400, 800, 1600, 3200, 6400, 12'800, 25'600, 51'200, 60'000, 60'000};
  EXPECT_EQ(pauses_after({1000, seconds(10)}, uptimes), expected);
  EXPECT_EQ(pauses_after({1000, seconds(0)}, uptimes), expected);  // as with torchrun's command line
}

TEST(RestartPolicy, StartsOverAfterAnAttemptThatRanForAWhile) {
  const std::vector<milliseconds> uptimes = {milliseconds(5), milliseconds(5), milliseconds(5),
                                             seconds(60),     milliseconds(5), milliseconds(5)};
  EXPECT_EQ(pauses_after({1000, seconds(10)}, uptimes), (std::vector<long>{0, 100, 200, 0, 0, 100}));
}

TEST(RestartPolicy, DoesNotRetryTheSameEarlyFailure) {
  RestartPolicy policy(5, seconds(10));
  EXPECT_TRUE(policy.allows(0, seconds(1), "exit code 3"));
  EXPECT_TRUE(policy.allows(1, seconds(20), "exit code 3"));
  EXPECT_TRUE(policy.allows(2, seconds(1), "exit code 3"));
  EXPECT_FALSE(policy.allows(3, seconds(1), "exit code 3"));
  EXPECT_TRUE(policy.saw_repetition());
}

TEST(RestartPolicy, RetriesTheSameFailureIfToldTo) {
  RestartPolicy policy(2, seconds(0));
  EXPECT_TRUE(policy.allows(0, seconds(1), "exit code 3"));
  EXPECT_TRUE(policy.allows(1, seconds(1), "exit code 3"));
  EXPECT_FALSE(policy.allows(2, seconds(1), "exit code 3"));
  EXPECT_FALSE(policy.saw_repetition());
}

}  // namespace
}  // namespace tandem
