#include "base/clock.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;

TEST(UtcText, WritesMomentsAsSortableText) {
  EXPECT_EQ(utc_text(system_clock::time_point(0s)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(system_clock::time_point(1700000000s + 45ms)), "2023-11-14T22:13:20.045Z");
  EXPECT_EQ(utc_text(system_clock::time_point(-1ms)), "1969-12-31T23:59:59.999Z");
}

TEST(ProcessStart, LiesShortlyBeforeNow) {
  const auto now = since_boot();
  EXPECT_LE(process_start(), now);
  EXPECT_GT(process_start(), now - 1h);
  EXPECT_EQ(process_start(), process_start());
}

TEST(Deadline, InThePastHasPassedAndDoesNotWait) {
  const Deadline deadline(-1s);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.poll_ms(), 0);
}

TEST(Deadline, AheadHasNotPassed) {
  const Deadline deadline(1h);
  EXPECT_FALSE(deadline.passed());
  EXPECT_GT(deadline.poll_ms(), 3'590'000);
  EXPECT_LE(deadline.poll_ms(), 3'600'000);
}

TEST(Deadline, NeverSaysZeroBeforeItHasPassed) {
  const Deadline deadline(20ms);
  while (!deadline.passed()) {
    const int wait = deadline.poll_ms();
    EXPECT_TRUE(wait >= 1 || deadline.passed());
  }
}

TEST(Deadline, FarAheadFitsPollsInteger) { EXPECT_EQ(Deadline(24h * 365).poll_ms(), 2147483647); }

TEST(Stopwatch, NeverRunsBackwards) {
  const Stopwatch watch;
  const double first = watch.seconds();
  EXPECT_GE(first, 0.0);
  EXPECT_GE(watch.seconds(), first);
}

}  // namespace
}  // namespace tandem
