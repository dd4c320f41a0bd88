#include "recipe/optimization.h"

#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <filesystem>
#include <vector>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

// The best of these metrics, one for each step of a run.
struct BestOf {
  double metric = 0;
  std::string checkpoint;
};

BestOf best_of(const std::vector<double>& metrics, Better better) {
  const TempFolder temp;
  AcceleratorOptions options{.precision = Precision::Fp32, .batch = {.batch_size = 2}};
  options.training.max_steps = std::ssize(metrics);
  options.training.retention.better = better;
  options.monitor.progress.progress = false;
  Accelerator accelerator(options, {.folder = temp.path()});
  torch::nn::Linear net(1, 1);
  auto model = accelerator.prepare(net);
  Sgd optimizer(*net);
  accelerator.prepare(optimizer);
  Optimization optimization(accelerator, {.cadence = {.eval_every = 1}});
  Sampler sampler = accelerator.sampler(16);
  std::size_t step = 0;
  for ([[maybe_unused]] const SampleBatch& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward(model(torch::ones({1, 1})).sum());
    EXPECT_TRUE(optimization.step());
    optimization.record({{"metric", metrics[step]}}, metrics[step]);
    ++step;
  }
  accelerator.end_training();
  const auto found = find_checkpoint(temp.path() + "/checkpoints", Which::Best);
  return {optimization.cadence().best().value(), found.path.value().filename()};
}

TEST(Optimization, AndItsCheckpointsAgreeOnTheBestMetric) {
  const BestOf lowest = best_of({0.5, 0.1, 0.3}, Better::Lower);
  EXPECT_EQ(lowest.metric, 0.1);
  EXPECT_EQ(lowest.checkpoint, "step-00000002");
  const BestOf highest = best_of({0.1, 0.5, 0.3}, Better::Higher);
  EXPECT_EQ(highest.metric, 0.5);
  EXPECT_EQ(highest.checkpoint, "step-00000002");
}

TEST(Schedule, KeepsAWarmUpThatFitsTheRun) {
  OptimizeOptions options;
  options.schedule.warmup_steps = 50;
  const RunPlace preset{.proposed = {"warmup-steps"}};
  EXPECT_EQ(fit_schedule(options, {.epochs = 6}, 125, preset).schedule.warmup_steps, 50);
  EXPECT_EQ(fit_schedule(options, {.epochs = 1, .max_steps = 50}, 125, preset).schedule.warmup_steps, 50);
}

TEST(Schedule, ShortensAWarmUpThatAPresetChoseToAFifthOfTheRun) {
  OptimizeOptions options;
  options.schedule.warmup_steps = 100;
  const RunPlace preset{.proposed = {"warmup-steps"}};
  EXPECT_EQ(fit_schedule(options, {.epochs = 1000, .max_steps = 31}, 97, preset).schedule.warmup_steps, 6);
  EXPECT_EQ(fit_schedule(options, {.epochs = 1, .max_steps = 3}, 97, preset).schedule.warmup_steps, 0);
  const Error given = error_of([&] { fit_schedule(options, {.max_steps = 31}, 97); });
  EXPECT_EQ(given.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(given.message(), {"warmup-steps is 100", "31 steps"})) << given.message();
}

}  // namespace
}  // namespace tandem
