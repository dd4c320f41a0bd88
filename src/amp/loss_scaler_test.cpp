#include <gtest/gtest.h>
#include <tandem/mixed_precision.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

Tensor scalar(double value) { return torch::tensor(value, torch::kFloat); }

// One letter per step, o: overflow. Expected values: tests/parity/optim_reference.py.
TEST(LossScaler, ReactsToOverflowsAsTorch) {
  LossScaler scaler(Precision::Fp16, torch::kCPU, {.init_scale = 64, .growth_interval = 3});
  const std::string steps = "..o...oo....o......";
  const std::vector<double> scales = {64, 64, 32, 32, 32, 64, 32, 16, 16, 16, 32, 32, 16, 16, 16, 32, 32, 32, 64};
  const std::vector<std::int64_t> trackers = {1, 2, 0, 1, 2, 0, 0, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    scaler.update(scalar(steps[i] == 'o' ? 1 : 0));
    EXPECT_EQ(scaler.scale(), scales[i]) << i;
    EXPECT_EQ(scaler.state()->growth_tracker, trackers[i]) << i;
  }
}

TEST(LossScaler, HasTheDefaultsOfTorch) {
  LossScaler scaler(Precision::Fp16, torch::kCPU);
  for (int step = 0; step < 1999; ++step) scaler.update(scalar(0));
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.update(scalar(0));
  EXPECT_EQ(scaler.scale(), 131072);
  scaler.update(scalar(1));
  EXPECT_EQ(scaler.scale(), 65536);
}

TEST(LossScaler, DividesByTheFactorOfTheLoss) {
  LossScaler scaler(Precision::Fp16, torch::kCPU);
  scaler.normalize_by(5000);
  scaler.normalize_by(3);
  EXPECT_EQ(scaler.scaled(scalar(10)).item<float>(), 160);  // 65536 / 4096 = 16
  EXPECT_EQ(scaler.divisor(torch::tensor(5000)).item<float>(), 80'000);
  EXPECT_EQ(scaler.divisor(torch::tensor(5000)).scalar_type(), torch::kFloat);
}

TEST(LossScaler, ScalesAnFp16LossWithoutOverflow) {
  const LossScaler scaler(Precision::Fp16, torch::kCPU);
  EXPECT_EQ(scaler.scaled(torch::tensor(4.0, torch::kHalf)).item<float>(), 262'144);
}

TEST(LossScaler, DoesNothingForOtherPrecisions) {
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    LossScaler scaler(precision, torch::kCPU);
    scaler.normalize_by(4096);
    scaler.update(scalar(1));
    const Tensor loss = scalar(3);
    EXPECT_TRUE(scaler.scaled(loss).is_same(loss));
    EXPECT_EQ(scaler.divisor(torch::tensor(7)).item<float>(), 7);
    EXPECT_EQ(scaler.scale(), 1);
    EXPECT_FALSE(scaler.state());
  }
}

// The gradient of the bias is a sum over 4096 tokens in fp16, whose maximum is 65504.
Tensor bias_gradient(const LossScaler& scaler, Precision precision) {
  torch::nn::Linear head(4, 8);
  {
    const torch::NoGradGuard no_grad;
    head->weight.fill_(0.5);
    head->bias.zero_();
  }
  const Tensor tokens = torch::ones({4096, 4}), targets = torch::zeros({4096}, torch::kLong);
  Tensor loss_sum;
  {
    const Autocast autocast(torch::kCPU, precision);
    loss_sum = torch::cross_entropy_loss(head(tokens).to(torch::kFloat), targets, {}, at::Reduction::Sum);
  }
  scaler.scaled(loss_sum).backward();
  return head->bias.grad() / scaler.divisor(torch::tensor(4096));
}

TEST(LossScaler, ASumOver4096TokensDoesNotOverflowFp16) {
  LossScaler scaler(Precision::Fp16, torch::kCPU);
  EXPECT_FALSE(bias_gradient(scaler, Precision::Fp16).isfinite().all().item<bool>());
  scaler.normalize_by(4096);
  const Tensor expected = torch::tensor({-0.875F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F});
  EXPECT_TRUE(torch::allclose(bias_gradient(scaler, Precision::Fp16), expected, 1e-3));
}

TEST(LossScaler, ResumesFromASavedState) {
  LossScaler scaler(Precision::Fp16, torch::kCPU, {.growth_interval = 3});
  scaler.normalize_by(100);
  scaler.update(scalar(1));
  scaler.update(scalar(0));
  scaler.update(scalar(0));
  LossScaler resumed(Precision::Fp16, torch::kCPU, {.growth_interval = 3});
  resumed.load_state(scaler.state());
  resumed.normalize_by(7);
  EXPECT_EQ(resumed.scale(), 32768);
  EXPECT_EQ(resumed.scaled(scalar(1)).item<float>(), 512);  // 32768 / 64
  resumed.update(scalar(0));
  EXPECT_EQ(resumed.scale(), 65536);

  resumed.load_state(LossScaler(Precision::Fp32, torch::kCPU).state());
  EXPECT_EQ(resumed.scale(), 65536);
}

TEST(LossScaler, RejectsInvalidStatesAndOptions) {
  LossScaler scaler(Precision::Fp16, torch::kCPU);
  EXPECT_TRUE(says(error_of([&] { scaler.load_state(LossScalerState{.scale = 2, .normalizer = 3}); }).message(),
                   {"loss scaler", "scale 2", "growth_tracker 0", "normalizer 3"}));
  for (const double scale : std::vector<double>{0, -1, INFINITY, NAN}) {
    EXPECT_EQ(error_of([&] { scaler.load_state(LossScalerState{.scale = scale}); }).kind(), ErrorKind::Checkpoint);
  }
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_TRUE(says(error_of([] { validate(LossScalerOptions{.backoff_factor = 2}); }).message(),
                   {"backoff-factor is 2", "0", "1"}));
  EXPECT_TRUE(
      says(error_of([] { validate(LossScalerOptions{.growth_interval = 0}); }).message(), {"growth-interval is 0"}));
}

}  // namespace
}  // namespace tandem
