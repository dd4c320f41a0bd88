#include <gtest/gtest.h>
#include <tandem/precision.h>

namespace tandem {
namespace {

constexpr DeviceFacts kA100{.cuda_major = 8}, kH200{.cuda_major = 9}, kT4{.cuda_major = 7, .cuda_minor = 5};
constexpr DeviceFacts kP100{.cuda_major = 6}, kNewCpu{.cpu_has_bf16 = true}, kOldCpu{};

TEST(ChoosePrecision, TakesBf16WhereTheHardwareMultipliesItFast) {
  for (const DeviceFacts& device : {kA100, kH200, kNewCpu}) {
    EXPECT_EQ(choose_precision(Precision::Auto, device).precision, Precision::Bf16);
  }
  EXPECT_EQ(choose_precision(Precision::Auto, kNewCpu).why, "a CPU with AVX512-BF16 multiplies bf16 fast");
}

TEST(ChoosePrecision, TakesFp16OnAT4) {
  const ChosenPrecision chosen = choose_precision(Precision::Auto, kT4);
  EXPECT_EQ(chosen.precision, Precision::Fp16);
  EXPECT_EQ(chosen.why, "a GPU of compute capability 7.5 multiplies fp16 fast, not bf16");
}

TEST(ChoosePrecision, TakesFp32WhereNothingElseIsFast) {
  EXPECT_EQ(choose_precision(Precision::Auto, kP100).precision, Precision::Fp32);
  const ChosenPrecision chosen = choose_precision(Precision::Auto, kOldCpu);
  EXPECT_EQ(chosen.precision, Precision::Fp32);
  EXPECT_EQ(chosen.why, "a CPU without AVX512-BF16 has no fast 16-bit type");
}

TEST(ChoosePrecision, TakesWhatWasAskedForAndSaysWhereItIsSlow) {
  EXPECT_EQ(choose_precision(Precision::Fp32, kH200).precision, Precision::Fp32);
  EXPECT_EQ(choose_precision(Precision::Fp16, kH200).why, "it was asked for");
  EXPECT_EQ(choose_precision(Precision::Bf16, kT4).precision, Precision::Bf16);
  EXPECT_EQ(choose_precision(Precision::Bf16, kT4).why,
            "it was asked for; it is slow on a GPU of compute capability 7.5");
  EXPECT_EQ(choose_precision(Precision::Fp16, kNewCpu).why, "it was asked for; it is slow on a CPU with AVX512-BF16");
}

}  // namespace
}  // namespace tandem
