#include "monitor/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

TEST(Numbers, KeepTheirWidthByGivingUpDecimals) {
  EXPECT_EQ(fit(3.41271, 6, 4), "3.4127");
  EXPECT_EQ(fit(10.98765, 6, 4), "10.988");
  EXPECT_EQ(fit(-10.98765, 6, 4), "-10.99");
  EXPECT_EQ(fit(9.99996, 6, 4), "10.000");
  EXPECT_EQ(fit(123456.7, 6, 4), "123457");
  EXPECT_EQ(fit(1234567, 6, 4), "1e+06");
  EXPECT_EQ(fit(NAN, 6, 4), "nan");
  EXPECT_EQ(fit(-INFINITY, 6, 4), "-inf");
}

TEST(Numbers, AreCountedInThreeDigits) {
  EXPECT_EQ(short_count(77'100), "77.1k");
  EXPECT_EQ(short_count(5'124), "5.12k");
  EXPECT_EQ(short_count(512), "512");
  EXPECT_EQ(short_count(3.14159), "3.14");
  EXPECT_EQ(short_count(999.4), "999");
  EXPECT_EQ(short_count(999'600), "1.00M");
  EXPECT_EQ(short_count(124'439'808), "124M");
  EXPECT_EQ(short_count(0), "0");
}

TEST(Numbers, TellTimeInTwoUnits) {
  EXPECT_EQ(short_time(0.4), "0s");
  EXPECT_EQ(short_time(59.4), "59s");
  EXPECT_EQ(short_time(59.6), "1m00s");
  EXPECT_EQ(short_time(62), "1m02s");
  EXPECT_EQ(short_time(7'511), "2h05m");
  EXPECT_EQ(short_time(273'600), "3d04h");
  EXPECT_EQ(short_time(NAN), "?");
  EXPECT_EQ(short_time(INFINITY), "?");
}

TEST(Numbers, TellHowLongAStepTookInThreeDigits) {
  EXPECT_EQ(step_time(0.0041), "4.1 ms");
  EXPECT_EQ(step_time(0.2124), "212 ms");
  EXPECT_EQ(step_time(0.9996), "1.00 s");
  EXPECT_EQ(step_time(61.54), "61.5 s");
  EXPECT_EQ(step_time(1000), "16m40s");
}

TEST(Numbers, TellSizesInBinaryUnits) {
  EXPECT_EQ(short_bytes({640}), "640 B");
  EXPECT_EQ(short_bytes({1'536}), "1.50 KiB");
  EXPECT_EQ(short_bytes({497'759'232}), "475 MiB");
  EXPECT_EQ(short_bytes({12'025'908'428}), "11.2 GiB");
}

}  // namespace
}  // namespace tandem
