#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <tandem/checkpoint.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "train/accelerator_options_test.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

using torch::Tensor;

// The gradient of this loss is 1 on every rank.
template <class Model>
LossSum unit_loss(Model& model) {
  return {model(torch::ones({1})).sum(), 1};
}

std::vector<std::string> step_lines(const std::filesystem::path& folder) {
  std::vector<std::string> lines;
  for (const std::string& line : read_event_lines(folder / "events.jsonl")) {
    if (line.find(R"("event":"step")") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

TEST(OnePart, WithANameIsShownOncePerStepOfBatches) {
  const TempFolder temp;
  Accelerator accelerator(options_of({.batch_size = 4}, 3), {.folder = temp.path()});
  Line line;
  auto model = accelerator.prepare("line", line);
  Sgd optimizer(*line);
  accelerator.prepare("line", optimizer);
  Sampler sampler = accelerator.sampler(37);
  for ([[maybe_unused]] const SampleBatch& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward(unit_loss(model));
    accelerator.step(1);
  }
  accelerator.end_training();
  EXPECT_EQ(step_lines(temp.path()).size(), 3U);
}

TEST(OnePart, WithoutANameIsShownOncePerStepOfSteps) {
  const TempFolder temp;
  Accelerator accelerator(options_of({.batch_size = 4}, 3), {.folder = temp.path()});
  Line line;
  auto model = accelerator.prepare(line);
  Sgd optimizer(*line);
  accelerator.prepare(optimizer);
  Sampler sampler = accelerator.sampler(37);
  for (auto& step : accelerator.steps(sampler)) {
    step.train("", {.lr = 1}, [&](const SampleBatch&) { return unit_loss(model); });
  }
  accelerator.end_training();
  EXPECT_EQ(step_lines(temp.path()).size(), 3U);
  EXPECT_EQ(line->value(), -3);
}

// Two parts, of which the second is trained in every other step, each with an average of decay 0.5.
TEST(Averages, AreUpdatedByTheTrainingOfTheirPart) {
  Accelerator accelerator(options_of({.batch_size = 4}, 2));
  Line often, seldom;
  auto first = accelerator.prepare("often", often);
  auto second = accelerator.prepare("seldom", seldom);
  Sgd first_optimizer(*often), second_optimizer(*seldom);
  accelerator.prepare("often", first_optimizer);
  accelerator.prepare("seldom", second_optimizer);
  Line often_average, seldom_average;
  Ema first_ema(*often, *often_average, {.decay = 0.5}), second_ema(*seldom, *seldom_average, {.decay = 0.5});
  accelerator.prepare("often", first_ema);
  accelerator.prepare("seldom", second_ema);
  Sampler sampler = accelerator.sampler(37);
  std::vector<double> seen;
  for (auto& step : accelerator.steps(sampler)) {
    step.train("often", {.lr = 1}, [&](const SampleBatch&) { return unit_loss(first); });
    seen.push_back(often_average->value());
    if (step.index() == 0) step.train("seldom", {.lr = 1}, [&](const SampleBatch&) { return unit_loss(second); });
  }
  EXPECT_EQ(seen, (std::vector<double>{-0.5, -1.25})) << "in the step itself";
  EXPECT_EQ(seldom_average->value(), -0.5) << "one update";
}

TEST(Averages, OfAllRanksStartWithTheWeightsOfRank0) {
  run_ranks(2, [](const World& world) {
    Accelerator accelerator(options_of({.batch_size = 4}, 1));
    Line line, average;
    {
      const torch::NoGradGuard no_grad;
      line->weight.fill_(10 + world.rank);
    }
    Ema ema(*line, *average, {.decay = 0.5});  // before rank 0's weights were broadcast
    auto model = accelerator.prepare(line);
    Sgd optimizer(*line);
    accelerator.prepare(optimizer);
    accelerator.prepare(ema);
    EXPECT_EQ(average->value(), 10);
  });
}

TEST(Parts, MayNotShareAParameter) {
  Accelerator accelerator(options_of({.batch_size = 4}, 1));
  torch::nn::Linear shared(2, 2);
  torch::nn::Sequential a(shared), b(shared);
  auto first = accelerator.prepare("a", a);
  const Error error = error_of([&] { auto second = accelerator.prepare("b", b); });
  EXPECT_TRUE(says(error.message(), {"0.weight", "'b'", "'a'"}));
}

TEST(Parts, ClipByTheOptionsOfTrainOnly) {
  Accelerator accelerator(options_of({.batch_size = 4}, 1));
  Line line;
  auto model = accelerator.prepare("line", line);
  Sgd optimizer(*line);
  accelerator.prepare("line", optimizer);
  Sampler sampler = accelerator.sampler(37);
  const auto loss = [&](const SampleBatch&) { return unit_loss(model); };
  for (auto& step : accelerator.steps(sampler)) {
    accelerator.clip_grad_norm(1);
    EXPECT_TRUE(says(error_of([&] { step.train("line", {}, loss); }).message(), {"clip_grad_norm()", "max_norm"}));
    accelerator.clip_grad_norm(0);
    step.train("line", {.lr = 1}, loss);
  }
}

struct Layers {
  Layers() : first(1, 1), second(1, 1), third(1, 1), net(first, second, third) {
    for (const Tensor& parameter : third->parameters()) parameter.requires_grad_(false);
  }
  torch::nn::Linear first, second, third;
  torch::nn::Sequential net;
};

// The first layer is frozen before step 1 and unfrozen before step 3.
std::vector<double> first_bias_after_each_step(std::int64_t last, const std::filesystem::path& folder) {
  Accelerator accelerator(options_of({.batch_size = 4}, last), {.folder = folder});
  Layers layers;
  auto model = accelerator.prepare(layers.net);
  Sgd optimizer(*layers.net);
  accelerator.prepare(optimizer);
  Sampler sampler = accelerator.sampler(37);
  std::vector<double> values;
  for (auto& step : accelerator.steps(sampler)) {
    if (step.index() == 1) accelerator.freeze(*layers.first);
    if (step.index() == 3) accelerator.unfreeze(*layers.net);
    step.train("", {.lr = 0.1}, [&](const SampleBatch&) { return unit_loss(model); });
    values.push_back(layers.first->bias.item<double>());
  }
  accelerator.end_training();
  EXPECT_FALSE(layers.third->bias.requires_grad()) << "as it was prepared";
  return values;
}

TEST(Frozen, LayersAreSoAfterAResume) {
  const TempFolder temp;
  const std::vector<double> whole = first_bias_after_each_step(5, temp.path() + "/whole");
  EXPECT_EQ(whole[1], whole[0]);
  EXPECT_EQ(whole[2], whole[0]);
  EXPECT_NE(whole[3], whole[2]);
  first_bias_after_each_step(2, temp.path() + "/parts");
  const std::vector<double> resumed = first_bias_after_each_step(5, temp.path() + "/parts");
  EXPECT_EQ(resumed, std::vector<double>(whole.begin() + 2, whole.end()));
}

TEST(Frozen, LayersThatWereUnfrozenAreSoAfterAResume) {
  const TempFolder temp;
  const std::vector<double> whole = first_bias_after_each_step(6, temp.path() + "/whole");
  first_bias_after_each_step(4, temp.path() + "/parts");
  EXPECT_EQ(first_bias_after_each_step(6, temp.path() + "/parts"), std::vector<double>(whole.begin() + 4, whole.end()));
}

}  // namespace
}  // namespace tandem
