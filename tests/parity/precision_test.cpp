#include <gtest/gtest.h>
#include <tandem/train_step.h>
#include <torch/torch.h>

#include "gpt/model.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr bench::GptShape kShape{.vocabulary = 64, .length = 32, .layers = 2, .width = 64, .heads = 4};

// Each token follows from the one before, but for the first.
Tensor sentences(std::int64_t step) {
  torch::manual_seed(step);
  std::vector<Tensor> columns = {torch::randint(kShape.vocabulary, {8})};
  for (std::int64_t i = 0; i < kShape.length; ++i) columns.push_back((columns.back() * 5 + 3) % kShape.vocabulary);
  return torch::stack(columns, 1);
}

// The losses of a training, until one is below half of the first or there are `limit`.
std::vector<double> losses_in(Precision precision, std::size_t limit) {
  torch::set_num_threads(1);
  Communicator comm = Communicator::join();
  DistributedDataParallel model(bench::Gpt(kShape), comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(precision, torch::kCPU);
  std::vector<double> losses;
  while (losses.size() < limit && (losses.empty() || precision != Precision::Fp32 || losses.back() > losses[0] / 2)) {
    const auto step = static_cast<std::int64_t>(losses.size());
    const auto loss = [&](const Tensor& tokens) {
      const std::int64_t count = tokens.size(0) * kShape.length;
      return LossSum{model(tokens).to(torch::kFloat) * count, count};
    };
    const StepOptions options{.step = step, .lr = 1e-3, .max_norm = 1};
    const StepResult result = train_step(model, optimizer, scaler, std::vector{sentences(step)}, loss, options);
    EXPECT_FALSE(result.was_skipped) << "step " << step;
    losses.push_back(result.loss);
  }
  return losses;
}

TEST(Precision, OfSixteenBitsLearnsAsFastAsFp32) {
  const std::vector<double> fp32 = losses_in(Precision::Fp32, 400);
  ASSERT_LT(fp32.size(), 400U);
  ASSERT_GT(fp32[0], 4);  // ln 64 is 4.16: nothing is known at first
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    const double loss = losses_in(precision, fp32.size()).back();
    EXPECT_NEAR(loss / fp32.back(), 1, 0.02);
    EXPECT_NE(loss, fp32.back()) << "so it was another precision";
  }
}

}  // namespace
}  // namespace tandem
