#include "models/gpt2/gpt2.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "models/gpt2/random_gpt2_test.h"

namespace tandem {
namespace {

using torch::Tensor;

Gpt2Options with_dropout(double dropout) {
  Gpt2Options options = kTinyGpt2;
  options.dropout = dropout;
  return options;
}

TEST(Gpt2Options, HaveThePublishedSizes) {
  EXPECT_EQ(num_parameters(gpt2_options(Gpt2Size::Small)), 124'439'808);
  EXPECT_EQ(num_parameters(gpt2_options(Gpt2Size::Medium)), 354'823'168);
  EXPECT_EQ(num_parameters(gpt2_options(Gpt2Size::Large)), 774'030'080);
  EXPECT_EQ(num_parameters(gpt2_options(Gpt2Size::Xl)), 1'557'611'200);
}

TEST(Gpt2Options, CountTheParametersOfTheModel) {
  for (const bool bias : {false, true}) {
    Gpt2Options options = kTinyGpt2;
    options.bias = bias;
    std::int64_t count = 0;
    for (const Tensor& parameter : Gpt2(options)->parameters()) count += parameter.numel();
    EXPECT_EQ(num_parameters(options), count);
  }
}

// 6 x 123,653,376 + 12 x 12 x 768 x 1024 = 741,920,256 + 113,246,208
TEST(Gpt2Options, CountTheFlopsPerToken) {
  EXPECT_EQ(flops_per_token(gpt2_options(Gpt2Size::Small), 1024), 855'166'464);
}

TEST(Gpt2Options, RejectInvalidSizes) {
  const auto message = [](Gpt2Options options) { return error_of([&] { validate(options); }).message(); };
  EXPECT_TRUE(says(message({.heads = 5}), {"width is 768", "heads: 5"}));
  EXPECT_TRUE(says(message({.layers = 0}), {"layers is 0"}));
  EXPECT_TRUE(says(message({.dropout = 1}), {"dropout is 1"}));
  EXPECT_TRUE(says(message({.dropout = std::numeric_limits<double>::quiet_NaN()}), {"dropout is nan"}));
  EXPECT_EQ(message({}), "");
}

TEST(Gpt2, IsInitializedAsPublished) {
  torch::manual_seed(1);
  Gpt2 model(Gpt2Options{.layers = 8, .heads = 4, .width = 128, .context = 64, .vocabulary = 500});
  const auto parameters = model->named_parameters();
  const auto std = [&](const char* name) { return parameters[name].std().item<double>(); };
  EXPECT_NEAR(std("wte.weight"), 0.02, 0.0005);
  EXPECT_NEAR(std("wpe.weight"), 0.02, 0.0005);
  EXPECT_NEAR(std("h.7.attn.c_attn.weight"), 0.02, 0.0005);
  EXPECT_NEAR(std("h.7.mlp.c_fc.weight"), 0.02, 0.0005);
  EXPECT_NEAR(std("h.0.attn.c_proj.weight"), 0.005, 0.0002);  // 0.02 / sqrt(2 x 8)
  EXPECT_NEAR(std("h.7.mlp.c_proj.weight"), 0.005, 0.0002);
  EXPECT_TRUE(parameters["h.3.ln_2.weight"].eq(1).all().item<bool>());
  EXPECT_TRUE(parameters["h.3.mlp.c_fc.bias"].eq(0).all().item<bool>());
  EXPECT_NEAR(model->logits(torch::zeros({1, 4}, torch::kLong)).std().item<double>(), 0.226, 0.03);  // 0.02 x sqrt(128)
}

TEST(Gpt2, IsCausal) {
  Gpt2 model = random_gpt2();
  const Tensor ids = random_ids(2, 10);
  const Tensor before = model->logits(ids);
  const Tensor changed = ids.clone();
  changed.select(1, 6).add_(1).remainder_(kTinyGpt2.vocabulary);
  const Tensor after = model->logits(changed);
  EXPECT_TRUE(before.narrow(1, 0, 6).equal(after.narrow(1, 0, 6)));
  EXPECT_GT((before - after).narrow(1, 6, 4).abs().amax({0, 2}).min().item<double>(), 1e-3);
}

TEST(Gpt2, RejectsASequenceBeyondItsContext) {
  Gpt2 model(kTinyGpt2);
  EXPECT_TRUE(says(error_of([&] { model->logits(random_ids(1, 25)); }).message(), {"gpt2", "25 tokens", "24"}));
}

TEST(Gpt2, AppliesDropoutOnlyInTraining) {
  Gpt2 model = random_gpt2(with_dropout(0.5));
  const Tensor ids = random_ids(2, 10);
  EXPECT_FALSE(model->logits(ids).allclose(model->logits(ids)));
  model->eval();
  EXPECT_TRUE(model->logits(ids).equal(model->logits(ids)));
}

TEST(Gpt2, AppliesDropoutToEmbeddingsAndBlockOutputs) {
  Gpt2 model = random_gpt2(with_dropout(0.999999));
  const Tensor states = model->hidden(random_ids(1, 8));
  const Tensor bias = model->named_parameters()["ln_f.bias"];
  EXPECT_TRUE(states.allclose(bias.expand_as(states)));  // with everything dropped, the last norm gives its bias
}

TEST(Gpt2, GivesTheSameGradientsWithRecompute) {
  const Tensor ids = random_ids(2, 12), targets = random_ids(2, 12);
  std::vector<std::vector<Tensor>> grads;
  for (const bool recompute : {false, true}) {
    Gpt2 model = random_gpt2(with_dropout(0.2));
    model->set_recompute(recompute);
    torch::manual_seed(11);
    model->forward(ids, targets).sum.backward();
    grads.emplace_back();
    for (const Tensor& parameter : model->parameters()) grads.back().push_back(parameter.grad());
  }
  for (std::size_t i = 0; i < grads[0].size(); ++i) EXPECT_TRUE(grads[0][i].equal(grads[1][i])) << i;
}

TEST(Gpt2, IgnoresPositionsWithoutATarget) {
  const Tensor ids = random_ids(2, 6);
  Tensor targets = torch::full({2, 6}, kNoTarget, torch::kLong);
  targets.index_put_({0, 3}, 7);
  targets.index_put_({1, 5}, 9);
  Gpt2 model = random_gpt2();
  const auto [sum, count] = model->forward(ids, targets);
  const Tensor log_p = model->logits(ids).log_softmax(-1);
  EXPECT_EQ(count, 2);
  EXPECT_NEAR(sum.item<double>(), -(log_p[0][3][7] + log_p[1][5][9]).item<double>(), 1e-5);
}

TEST(Gpt2, HasAZeroLossWithoutTargets) {
  Gpt2 model = random_gpt2();
  const auto [sum, count] = model->forward(random_ids(2, 6), torch::full({2, 6}, kNoTarget, torch::kLong));
  sum.backward();
  EXPECT_EQ(count, 0);
  EXPECT_EQ(sum.item<double>(), 0);
  for (const Tensor& parameter : model->parameters()) EXPECT_EQ(parameter.grad().abs().sum().item<double>(), 0);
}

TEST(Gpt2, MayHaveNoBiases) {
  Gpt2Options options = kTinyGpt2;
  options.bias = false;
  for (const auto& parameter : Gpt2(options)->named_parameters()) EXPECT_TRUE(parameter.key().ends_with("weight"));
}

}  // namespace
}  // namespace tandem
