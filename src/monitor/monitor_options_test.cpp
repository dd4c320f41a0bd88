#include <gtest/gtest.h>
#include <tandem/run_options.h>

#include "base/error_test.h"

namespace tandem {
namespace {

TEST(MonitorOptions, RefuseAPeakOfZero) {
  EXPECT_EQ(error_of([] { validate(PeakOptions{.peak_tflops = 0}); }).message(), "peak-tflops is 0");
}

TEST(Workload, SaysHowItsSpeedIsWritten) {
  EXPECT_EQ(Workload{}.rate(), "samples/s");
  EXPECT_EQ(Workload{.unit = "tokens"}.rate(), "tok/s");
  EXPECT_EQ(Workload{.unit = "images"}.rate(), "img/s");
}

}  // namespace
}  // namespace tandem
