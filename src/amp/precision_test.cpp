#include <gtest/gtest.h>
#include <tandem/run_options.h>

#include "base/error_test.h"

namespace tandem {
namespace {

constexpr DeviceFacts kA100{.cuda_major = 8}, kH200{.cuda_major = 9}, kT4{.cuda_major = 7, .cuda_minor = 5};
constexpr DeviceFacts kP100{.cuda_major = 6}, kNewCpu{.cpu_has_bf16 = true}, kOldCpu{};

TEST(ChoosePrecision, IsBf16IfTheHardwareAcceleratesIt) {
  for (const DeviceFacts& device : {kA100, kH200, kNewCpu}) {
    EXPECT_EQ(choose_precision(Precision::Auto, device).precision, Precision::Bf16);
  }
  EXPECT_TRUE(says(choose_precision(Precision::Auto, kNewCpu).why, {"CPU with AVX512-BF16", "bf16"}));
}

TEST(ChoosePrecision, IsFp16OnAT4) {
  const ChosenPrecision chosen = choose_precision(Precision::Auto, kT4);
  EXPECT_EQ(chosen.precision, Precision::Fp16);
  EXPECT_TRUE(says(chosen.why, {"compute capability 7.5", "fp16", "bf16"}));
}

TEST(ChoosePrecision, IsFp32IfNothingElseIsFast) {
  EXPECT_EQ(choose_precision(Precision::Auto, kP100).precision, Precision::Fp32);
  const ChosenPrecision chosen = choose_precision(Precision::Auto, kOldCpu);
  EXPECT_EQ(chosen.precision, Precision::Fp32);
  EXPECT_TRUE(says(chosen.why, {"CPU without AVX512-BF16"}));
}

TEST(ChoosePrecision, KeepsTheRequestedOneAndReportsThatItIsSlow) {
  EXPECT_EQ(choose_precision(Precision::Fp32, kH200).precision, Precision::Fp32);
  EXPECT_EQ(choose_precision(Precision::Fp16, kH200).why, "requested");
  EXPECT_EQ(choose_precision(Precision::Bf16, kT4).precision, Precision::Bf16);
  EXPECT_TRUE(says(choose_precision(Precision::Bf16, kT4).why, {"requested", "slow", "compute capability 7.5"}));
  EXPECT_TRUE(says(choose_precision(Precision::Fp16, kNewCpu).why, {"requested", "slow", "CPU with AVX512-BF16"}));
}

}  // namespace
}  // namespace tandem
