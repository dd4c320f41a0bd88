#pragma once

#include <gtest/gtest.h>
#include <tandem/train_step.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdint>
#include <vector>

#include "gpt/model.h"

namespace tandem {

inline constexpr bench::GptShape kSmallGpt{.vocabulary = 64, .length = 32, .layers = 2, .width = 64, .heads = 4};

// Each token is determined by the one before it.
inline torch::Tensor sentences(std::int64_t step) {
  torch::manual_seed(step);
  std::vector<torch::Tensor> columns = {torch::randint(kSmallGpt.vocabulary, {8})};
  for (std::int64_t i = 0; i < kSmallGpt.length; ++i) {
    columns.push_back((columns.back() * 5 + 3) % kSmallGpt.vocabulary);
  }
  return torch::stack(columns, 1);
}

// The losses of a run, until one is below half of the first, at most `limit`.
inline std::vector<double> losses_in(Precision precision, std::size_t limit, Communicator& comm) {
  bench::Gpt gpt(kSmallGpt);
  gpt->to(comm.device());
  DistributedDataParallel model(gpt, comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(precision, comm.device());
  std::vector<double> losses;
  while (losses.size() < limit && (losses.empty() || precision != Precision::Fp32 || losses.back() > losses[0] / 2)) {
    const auto step = static_cast<std::int64_t>(losses.size());
    const auto loss = [&](const torch::Tensor& tokens) {
      const std::int64_t count = tokens.size(0) * kSmallGpt.length;
      return LossSum{model(tokens.to(comm.device())).to(torch::kFloat) * count, count};
    };
    const StepOptions options{.step = step, .lr = 1e-3, .max_norm = 1};
    const StepResult result = train_step(model, optimizer, scaler, std::vector{sentences(step)}, loss, options);
    EXPECT_FALSE(result.was_skipped) << "step " << step;
    losses.push_back(result.loss);
  }
  return losses;
}

// Checks that 16-bit training converges as fast as fp32, on every device. All ranks call it.
inline void check_sixteen_bits(Communicator& comm) {
  torch::set_num_threads(1);
  const std::vector<double> fp32 = losses_in(Precision::Fp32, 400, comm);
  ASSERT_LT(fp32.size(), 400U);
  ASSERT_GT(fp32[0], 4);  // ln 64 = 4.16: uniform predictions at first
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    const double loss = losses_in(precision, fp32.size(), comm).back();
    EXPECT_NEAR(loss / fp32.back(), 1, 0.02);
    EXPECT_NE(loss, fp32.back()) << "so it was another precision";
  }
}

}  // namespace tandem
