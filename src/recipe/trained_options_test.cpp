#include "recipe/trained_options.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

// The weight that is loaded from a run whose checkpoint has these tensors beside the weight 1.
float loaded(const NamedTensors& model, const NamedTensors& optimizer, Weights weights,
             const WeightChoice& choice = {}) {
  const TempFolder run;
  const auto path = save_checkpoint(run.path() + "/checkpoints", {.step = 7, .model = model, .optimizer = optimizer});
  torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
  EXPECT_EQ(load_run_weights(*net, run.path(), weights, choice), path);
  return net->weight.item<float>();
}

TEST(Trained, WeightsAreTheAveragedOnesIfThereAreAny) {
  const NamedTensors model = {{"weight", torch::full({1, 1}, 1.0F)}};
  const NamedTensors plain = {{"exp_avg.weight", torch::full({1, 1}, 3.0F)}};
  const NamedTensors averaged = {{"ema.average.weight", torch::full({1, 1}, 2.0F)}, {"ema.updates", torch::ones({})}};
  EXPECT_EQ(loaded(model, plain, Weights::Auto), 1);
  EXPECT_EQ(loaded(model, averaged, Weights::Auto), 2);
  EXPECT_EQ(loaded(model, averaged, Weights::Trained), 1);
  EXPECT_EQ(loaded(model, averaged, Weights::Averaged), 2);
  EXPECT_EQ(error_of([&] { loaded(model, plain, Weights::Averaged); }).kind(), ErrorKind::Checkpoint);
}

TEST(Trained, WeightsAreThoseOfThePartThatIsNamed) {
  const NamedTensors model = {{"generator.weight", torch::full({1, 1}, 4.0F)},
                              {"discriminator.weight", torch::full({1, 1}, 5.0F)}};
  const NamedTensors averaged = {{"generator.ema.average.weight", torch::full({1, 1}, 6.0F)}};
  EXPECT_EQ(loaded(model, averaged, Weights::Auto, {.part = "generator"}), 6);
  EXPECT_EQ(loaded(model, averaged, Weights::Auto, {.part = "discriminator"}), 5);
  EXPECT_EQ(error_of([&] { loaded(model, averaged, Weights::Auto, {.part = "critic"}); }).kind(),
            ErrorKind::Checkpoint);
}

TEST(Trained, WeightsAreThoseOfTheOnlyAverageWhateverItsName) {
  const NamedTensors model = {{"weight", torch::full({1, 1}, 1.0F)}};
  const NamedTensors one = {{"ema-slow.average.weight", torch::full({1, 1}, 2.0F)}};
  NamedTensors two = one;
  two.emplace("ema-fast.average.weight", torch::full({1, 1}, 3.0F));
  EXPECT_EQ(loaded(model, one, Weights::Auto), 2);
  EXPECT_EQ(loaded(model, two, Weights::Auto), 1) << "neither of two";
  EXPECT_EQ(loaded(model, two, Weights::Averaged, {.average = "fast"}), 3);
  const Error error = error_of([&] { loaded(model, two, Weights::Averaged); });
  EXPECT_TRUE(says(error.message(), {"averaged weights"}));
  EXPECT_TRUE(says(error.hint(), {"ema-fast", "ema-slow"}));
}

TEST(Trained, WeightsHaveAKey) {
  torch::nn::Linear net(2, 1);
  const std::string key = weights_key(*net);
  EXPECT_EQ(weights_key(*net), key);
  net->to(torch::kBFloat16);
  EXPECT_NE(weights_key(*net), key);
  net->to(torch::kFloat);
  const torch::NoGradGuard no_grad;
  net->bias += 1;
  EXPECT_NE(weights_key(*net), key);
}

TEST(Trained, WeightsHaveTheTypeOfThePrecision) {
  const c10::Device cpu(c10::kCPU);
  EXPECT_EQ(weight_type(Precision::Fp32, cpu), c10::kFloat);
  EXPECT_EQ(weight_type(Precision::Bf16, cpu), c10::kBFloat16);
  EXPECT_EQ(weight_type(Precision::Fp16, cpu), c10::kHalf);
}

TEST(Trained, OptionsNameAModel) {
  EXPECT_EQ(error_of([] { validate(TrainedOptions{.from = ""}); }).kind(), ErrorKind::Config);
}

}  // namespace
}  // namespace tandem
