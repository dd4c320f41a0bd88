#include <gtest/gtest.h>
#include <tandem/ema.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

struct Scale : torch::nn::Module {
  Tensor weight = register_parameter("weight", torch::ones({1}, torch::kDouble));
  Tensor frozen = register_parameter("frozen", torch::ones({1}, torch::kDouble), false);
  Tensor mean = register_buffer("mean", torch::ones({1}, torch::kDouble));
  Tensor count = register_buffer("count", torch::ones({}, torch::kLong));
  Tensor tied = register_parameter("tied", weight);

  void set(double value) {
    const torch::NoGradGuard no_grad;
    weight.fill_(value);
    mean.fill_(value * 10);
    count.fill_(static_cast<std::int64_t>(value));
  }
};

double average(const Ema& ema, const std::string& name) {
  for (const auto& [key, tensor] : ema.state()) {
    if (key == name) return tensor.item<double>();
  }
  ADD_FAILURE() << name << " is not in the state";
  return 0;
}

TEST(Ema, MovesByOneMinusTheDecay) {
  Scale model;
  Ema ema(model, {.decay = 0.75});
  model.set(3);
  ema.update();
  EXPECT_DOUBLE_EQ(average(ema, "average.weight"), 1.5);  // 0.75 * 1 + 0.25 * 3
  model.set(5.5);
  ema.update();
  EXPECT_DOUBLE_EQ(average(ema, "average.weight"), 2.5);  // 0.75 * 1.5 + 0.25 * 5.5
  EXPECT_EQ(ema.state().size(), 2U);
}

// Decays of 0.9 * (1 - exp(-1 / 2)) = 0.35412 and 0.9 * (1 - exp(-1)) = 0.56891.
TEST(Ema, WarmsUpItsDecayAndAveragesBuffers) {
  Scale model;
  Ema ema(model, {.decay = 0.9, .ramp = 2, .buffers = true});
  model.set(3);
  ema.update();
  EXPECT_NEAR(average(ema, "average.weight"), 2.29175518748274, 1e-14);
  model.set(4);
  ema.update();
  EXPECT_NEAR(average(ema, "average.weight"), 3.0281650010460446, 1e-14);
  EXPECT_NEAR(average(ema, "average.mean"), 28.4684808, 1e-6);
  EXPECT_EQ(average(ema, "average.count"), 4);
  EXPECT_EQ(average(ema, "updates"), 2);
}

TEST(Ema, ReplacesTheWeightsWithinTheScopeOfTheGuard) {
  Scale model;
  Ema ema(model, {.decay = 0.75});
  const Tensor alias = model.weight.detach();
  model.set(3);
  ema.update();
  {
    const AveragedWeights guard = ema.swap_in();
    EXPECT_EQ(alias.item<double>(), 1.5);
    EXPECT_EQ(model.mean.item<double>(), 30);
    EXPECT_TRUE(says(error_of([&] { ema.update(); }).message(), {"ema: update"}));
    EXPECT_TRUE(says(error_of([&] { ema.state(); }).message(), {"ema: state"}));
    EXPECT_TRUE(says(error_of([&] { const auto again = ema.swap_in(); }).message(), {"ema: swap_in"}));
  }
  EXPECT_EQ(alias.item<double>(), 3);
  EXPECT_EQ(average(ema, "average.weight"), 1.5);
}

TEST(Ema, ResumesBitExactlyFromASavedState) {
  Scale model;
  const EmaOptions options{.decay = 0.9, .ramp = 3, .buffers = true};
  Ema ema(model, options);
  model.set(0.7);
  ema.update();
  ema.update();

  Scale other;
  Ema resumed(other, options);
  resumed.load_state(ema.state());
  for (const double value : {0.3, 1.9}) {
    model.set(value);
    other.set(value);
    ema.update();
    resumed.update();
  }
  EXPECT_EQ(average(resumed, "average.weight"), average(ema, "average.weight"));
  EXPECT_EQ(average(resumed, "updates"), 4);
}

TEST(Ema, ListsTheDifferencesOfAState) {
  const Scale model;
  Ema ema(model);
  const Error error = error_of([&] { ema.load_state({{"average.weight", torch::zeros({1})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"ema: ", "average.weight is Float [1]", "Double [1]", "updates is missing"}));
}

TEST(Ema, RejectsInvalidOptions) {
  const Scale model;
  EXPECT_TRUE(says(error_of([&] { Ema ema(model, {.decay = 1}); }).message(), {"decay is 1"}));
  EXPECT_TRUE(says(error_of([&] { Ema ema(model, {.ramp = -1}); }).message(), {"ramp is -1"}));
}

TEST(Ema, InAModuleOfItsOwnCanBeEvaluatedAtAnyTime) {
  Scale model;
  Scale average;
  average.set(7);
  Ema ema(model, average, {.decay = 0.75});
  EXPECT_EQ(average.weight.item<double>(), 1) << "it begins as a copy";
  model.set(3);
  ema.update();
  EXPECT_DOUBLE_EQ(average.weight.item<double>(), 1.5);
  EXPECT_DOUBLE_EQ(average.tied.item<double>(), 1.5);
  EXPECT_DOUBLE_EQ(model.weight.item<double>(), 3);
  EXPECT_DOUBLE_EQ(average.mean.item<double>(), 30) << "buffers are copied";
  EXPECT_EQ(average.count.item<double>(), 3);
  EXPECT_FALSE(average.is_training());
  EXPECT_FALSE(average.weight.requires_grad());
  EXPECT_TRUE(ema.has_own_module());
}

TEST(Ema, RefusesAModuleOfAnotherStructure) {
  Scale model;
  torch::nn::Linear linear(1, 1);
  const Error error = error_of([&] { Ema(model, *linear); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_NE(error.message().find("weight"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace tandem
