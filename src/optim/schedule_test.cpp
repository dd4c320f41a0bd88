#include <gtest/gtest.h>
#include <tandem/schedule.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

void expect_rates(const ScheduleOptions& options, std::int64_t num_steps, const std::vector<double>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(learning_rate(options, 0.5, static_cast<std::int64_t>(step), num_steps), expected[step], 1e-12) << step;
  }
}

// Expected values of these five: tests/parity/optim_reference.py.
TEST(LearningRate, DecaysLinearlyAsInTorch) {
  expect_rates({.kind = ScheduleKind::Linear}, 5, {0.5, 0.4, 0.3, 0.2, 0.1, 0.0});
}

TEST(LearningRate, DecaysAlongACosineToItsMinimumAsInTorch) {
  expect_rates({.kind = ScheduleKind::Cosine, .min_factor = 0.1}, 5,
               {0.5, 0.457028823734, 0.344528823734, 0.205471176266, 0.092971176266, 0.05});
}

TEST(LearningRate, WarmsUpLinearly) {
  expect_rates({.kind = ScheduleKind::Cosine, .warmup_steps = 4}, 12,
               {0.0, 0.125, 0.25, 0.375, 0.5, 0.480969883128, 0.426776695297, 0.345670858091, 0.25, 0.154329141909,
                0.073223304703, 0.019030116872});
}

TEST(LearningRate, DecaysPolynomiallyAsInTorch) {
  expect_rates({.kind = ScheduleKind::Poly, .power = 0.9}, 5,
               {0.5, 0.409026073025, 0.315722933745, 0.219191645277, 0.117461894309, 0.0});
}

TEST(LearningRate, FollowsOneCycleAsInTorch) {
  expect_rates({.kind = ScheduleKind::OneCycle, .min_factor = 0.01}, 10,
               {0.02, 0.26, 0.5, 0.475489794806, 0.40681372596, 0.307573931154, 0.197426068846, 0.09818627404,
                0.029510205194, 0.005});
  expect_rates({.kind = ScheduleKind::OneCycle, .min_factor = 0.01}, 7,
               {0.02, 0.490278313667, 0.459926805961, 0.337977850969, 0.182079422309, 0.054150128588, 0.005});
}

TEST(LearningRate, FollowsOneCycleWithAGivenWarmUp) {
  expect_rates({.kind = ScheduleKind::OneCycle, .warmup_steps = 4}, 9,
               {0.02, 0.090294372515, 0.26, 0.429705627485, 0.5});
  EXPECT_EQ(learning_rate({.kind = ScheduleKind::OneCycle, .warmup_steps = 8}, 0.5, 8, 9), 0.5);
}

TEST(LearningRate, MayBeConstant) {
  expect_rates({.kind = ScheduleKind::Constant, .warmup_steps = 2, .min_factor = 0.1}, 3, {0.0, 0.25, 0.5, 0.5, 0.5});
}

TEST(LearningRate, KeepsItsMinimumAfterTheRun) {
  for (const auto kind : {ScheduleKind::Linear, ScheduleKind::Cosine, ScheduleKind::Poly, ScheduleKind::OneCycle}) {
    EXPECT_NEAR(learning_rate({.kind = kind, .min_factor = 0.2}, 0.5, 100, 10), 0.1, 1e-15);
  }
}

TEST(LearningRate, IsThePeakInARunOfOneStep) {
  for (const auto& [name, kind] : enum_names(ScheduleKind{})) {
    EXPECT_EQ(learning_rate({.kind = kind}, 0.5, 0, 1), 0.5) << name;
  }
}

TEST(LearningRate, MayWarmUpForTheWholeRunButNoLonger) {
  const ScheduleOptions options{.kind = ScheduleKind::Linear, .warmup_steps = 10};
  EXPECT_EQ(learning_rate(options, 0.5, 9, 10), 0.45);
  EXPECT_TRUE(says(error_of([&] { learning_rate(options, 0.5, 0, 9); }).message(), {"warmup-steps is 10", "9 steps"}));
}

TEST(LearningRate, RejectsInvalidStepsAndOptions) {
  EXPECT_TRUE(says(error_of([] { learning_rate({}, 0.5, -1, 9); }).message(), {"step -1", "9"}));
  EXPECT_TRUE(says(error_of([] { learning_rate({}, 0.5, 0, 0); }).message(), {"step 0", "0"}));
  EXPECT_TRUE(says(error_of([] { validate(ScheduleOptions{.min_factor = 3e4}); }).message(), {"min-factor is 30000"}));
  EXPECT_TRUE(says(error_of([] { validate(ScheduleOptions{.warmup_steps = -1}); }).message(), {"warmup-steps is -1"}));
  EXPECT_TRUE(says(error_of([] { validate(ScheduleOptions{.power = 0}); }).message(), {"power is 0"}));
}

TEST(ScaledLearningRate, FollowsTheGlobalBatchOnlyOnRequest) {
  EXPECT_EQ(scaled_learning_rate(0.1, {}, 1024), 0.1);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, {.rule = ScaleLr::Linear, .reference_batch = 256}, 1024), 0.4);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, {.rule = ScaleLr::Sqrt, .reference_batch = 256}, 1024), 0.2);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(0.1, {.rule = ScaleLr::Linear, .reference_batch = 256}, 64), 0.025);
  EXPECT_EQ(scaled_learning_rate(0.1, {.rule = ScaleLr::Sqrt, .reference_batch = 256}, 256), 0.1);
}

// The guide doubles the learning rate for a second GPU, although its total batch size stays 16.
TEST(D14, TheRateFollowsTheGlobalBatchAndNotTheNumberOfRanks) {
  for (const ScaleLr rule : {ScaleLr::Off, ScaleLr::Linear, ScaleLr::Sqrt}) {
    EXPECT_EQ(scaled_learning_rate(0.1, {.rule = rule, .reference_batch = 16}, 16), 0.1);
  }
}

TEST(ScaledLearningRate, NeedsTheReferenceBatch) {
  const Error error = error_of([] { scaled_learning_rate(0.1, {.rule = ScaleLr::Linear}, 64); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"scale-lr", "reference-batch is 0"}));
  EXPECT_TRUE(says(error.hint(), {"--reference-batch"}));
}

}  // namespace
}  // namespace tandem
