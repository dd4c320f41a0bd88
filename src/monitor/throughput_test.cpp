#include <gtest/gtest.h>

#include "base/error_test.h"
#include "monitor/throughput.h"

namespace tandem {
namespace {

// GPT-2 of 124M parameters at 1024 tokens: 6 N + 12 L H Q T, by hand from N = 123,653,376 and L H Q = 12 x 768.
constexpr double kGpt2Flops = 855'166'464;

double peak_of(std::string_view device, std::string_view precision) {
  const auto peak = find_peak(device, precision);
  return peak ? peak->flops : 0;
}

TEST(Throughput, IsTokensBySeconds) {
  EXPECT_DOUBLE_EQ(tokens_per_second(16'384, 0.25), 65'536);
  EXPECT_EQ(tokens_per_second(16'384, 0), 0);
}

TEST(Throughput, KnowsDevicesByTheNamesThatDriversGiveThem) {
  EXPECT_DOUBLE_EQ(peak_of("Tesla T4", "fp16"), 65e12);
  EXPECT_DOUBLE_EQ(peak_of("Tesla T4", "fp32"), 8.1e12);
  EXPECT_DOUBLE_EQ(peak_of("Tesla P100-PCIE-16GB", "fp16"), 18.7e12);
  EXPECT_DOUBLE_EQ(peak_of("Tesla V100-SXM2-16GB", "fp16"), 125e12);
  EXPECT_DOUBLE_EQ(peak_of("Tesla V100-PCIE-32GB", "fp16"), 112e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA A100-SXM4-80GB", "bf16"), 312e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA A100-SXM4-80GB", "tf32"), 156e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H100 80GB HBM3", "bf16"), 989.4e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H100 PCIe", "bf16"), 756.5e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA H200", "fp32"), 66.9e12);
  EXPECT_DOUBLE_EQ(peak_of("NVIDIA L4", "bf16"), 121e12);
}

TEST(Throughput, GuessesNoPeak) {
  EXPECT_FALSE(find_peak("NVIDIA L40S", "bf16"));
  EXPECT_FALSE(find_peak("Tesla T4", "bf16"));
  EXPECT_FALSE(find_peak("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "bf16"));
  EXPECT_FALSE(find_peak("", "fp32"));
}

TEST(Throughput, NamesThePeakItMeasuresAgainst) {
  EXPECT_EQ(find_peak("Tesla T4", "fp16")->text(), "65.0 TFLOP/s a device (Tesla T4, fp16)");
  EXPECT_EQ(measured_peak(1.48e11, 2, "this CPU").text(),
            "0.30 TFLOP/s a device (this CPU, measured: 2 cores x 0.15 TFLOP/s)");
  EXPECT_EQ(measured_peak(2e11, 0.5, "this CPU").text(),
            "0.10 TFLOP/s a device (this CPU, measured: 0.5 cores x 0.20 TFLOP/s)");
  EXPECT_EQ(choose_peak({.peak_tflops = 400}, "NVIDIA H200", "bf16")->text(), "400 TFLOP/s a device (--peak-tflops)");
  EXPECT_DOUBLE_EQ(choose_peak({}, "NVIDIA H200", "bf16")->flops, 989.4e12);
}

TEST(Throughput, MeasuresMfuOverAllDevices) {
  Meter meter(1e9, Peak{100e12, "a card"}, 2);
  const Speed speed = meter.add(40'000, 0.5);
  EXPECT_DOUBLE_EQ(speed.per_second, 80'000);
  EXPECT_DOUBLE_EQ(speed.mfu.value(), 0.4);
  EXPECT_EQ(speed.warning, "");
}

TEST(Throughput, HasNoMfuWithoutAPeakOrAModel) {
  EXPECT_FALSE(Meter(1e9).add(100, 1).mfu);
  EXPECT_FALSE(Meter(0, Peak{1e12, "a card"}).add(100, 1).mfu);
}

TEST(Throughput, ForeseesTheEndFromTheLastTwentySteps) {
  Meter meter;
  EXPECT_EQ(meter.eta(100), 0);
  meter.add(1, 50);
  EXPECT_DOUBLE_EQ(meter.eta(10), 500);
  for (int step = 0; step < 20; ++step) meter.add(1, step % 2 == 0 ? 0.25 : 0.75);
  EXPECT_DOUBLE_EQ(meter.eta(10), 5);
}

// The guide's log says 17,561 %: it divided 18.6 TFLOP/s by a peak of 106e9.
TEST(D7, AT4DoesSixtyFiveTeraflops) {
  const double flops = 175.61 * 106e9;
  EXPECT_EQ(mfu_text(mfu(flops, find_peak("Tesla T4", "fp16")->flops)), "28.6%");
}

TEST(D7, AnImpossibleMfuIsNotShownAndWarnedOfOnce) {
  EXPECT_EQ(mfu_text(175.61), "n/a");
  EXPECT_EQ(mfu_text(1), "100.0%");
  Meter meter(1e9, Peak{106e9, "--peak-tflops"}, 1);
  EXPECT_TRUE(says(meter.add(18'615, 1).warning,
                   {"17561%", "18.6 TFLOP/s on 1 device", "0.11 TFLOP/s", "(--peak-tflops)", "--peak-tflops"}));
  EXPECT_EQ(meter.add(18'615, 1).warning, "");
}

// "2000 ms an iteration on one T4" for 256 sequences of 1024 tokens would be 112 TFLOP/s; for the 16 of a micro-batch
// it is 7.0.
TEST(D8, AClaimBeyondThePeakIsNotShown) {
  Meter meter(kGpt2Flops, find_peak("Tesla T4", "fp16"));
  const Speed claimed = meter.add(262'144, 2.0);
  EXPECT_NEAR(claimed.mfu.value(), 1.724, 0.001);
  EXPECT_EQ(mfu_text(*claimed.mfu), "n/a");
  EXPECT_TRUE(says(claimed.warning, {"172%", "112 TFLOP/s on 1 device"}));
  EXPECT_EQ(mfu_text(meter.add(16'384, 2.0).mfu.value()), "10.8%");
}

}  // namespace
}  // namespace tandem
