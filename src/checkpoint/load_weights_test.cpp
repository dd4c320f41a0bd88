#include <gtest/gtest.h>
#include <tandem/checkpoint.h>
#include <tandem/error.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <filesystem>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// weight [2, 3], bias [2].
struct SmallHead : torch::nn::Module {
  SmallHead() {
    register_parameter("weight", torch::zeros({2, 3}));
    register_parameter("bias", torch::zeros({2}));
  }
  torch::Tensor weight() const { return named_parameters()["weight"]; }
  torch::Tensor bias() const { return named_parameters()["bias"]; }
};

// One tensor under two names.
struct TiedHead : torch::nn::Module {
  TiedHead() {
    const auto weight = register_parameter("embedding", torch::zeros({2}));
    register_parameter("head", weight);
  }
};

NamedTensors head_of_a_file() {
  return {{"model.score.weight", torch::arange(6, torch::kFloat).view({2, 3})},
          {"model.score.bias", torch::tensor({7.0F, 8.0F})},
          {"model.rotary.inv_freq", torch::ones({4})}};
}

std::string without_model(const std::string& name) {
  return name == "model.rotary.inv_freq" ? "" : name.substr(std::string("model.score.").size());
}

TEST(LoadWeights, RenamesAndSaysWhatStayedOut) {
  const TempFolder temp;
  const fs::path path = fs::path(temp.path()) / "model.safetensors";
  save_safetensors(path, head_of_a_file());
  SmallHead module;
  const LeftOutWeights left_out = load_weights(module, path, {.rename = without_model});
  EXPECT_EQ(left_out.missing, Names());
  EXPECT_EQ(left_out.extra, Names{"model.rotary.inv_freq"});
  EXPECT_TRUE(module.weight().equal(torch::tensor({{0.0F, 1.0F, 2.0F}, {3.0F, 4.0F, 5.0F}})));
  EXPECT_TRUE(module.bias().equal(torch::tensor({7.0F, 8.0F})));
  EXPECT_TRUE(module.weight().requires_grad() && module.weight().is_leaf());
}

TEST(LoadWeights, LeavesOutWhatMayBeMissingOrExtra) {
  SmallHead module;
  const NamedTensors weights = {{"bias", torch::ones({2})}, {"other", torch::ones({5})}};
  const LeftOutWeights left_out = load_weights(module, weights, {.allow_missing = true, .allow_extra = true});
  EXPECT_EQ(left_out.missing, Names{"weight"});
  EXPECT_EQ(left_out.extra, Names{"other"});
  EXPECT_EQ(module.weight().abs().sum().item<float>(), 0);
  EXPECT_EQ(module.bias().sum().item<float>(), 2);
}

TEST(LoadWeights, ListsAllDifferencesAndCopiesNothing) {
  SmallHead module;
  const NamedTensors weights = {{"bias", torch::ones({2})}, {"w", torch::ones({2, 3})}, {"x", torch::ones({5})}};
  const auto renamed = [](const std::string& name) { return name == "w" ? "wight" : name; };
  const Error error = error_of([&] { load_weights(module, weights, {.rename = renamed}); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"3 of 4 tensors", "weight [2, 3] is missing",
                                     "w [2, 3], renamed to wight, is unexpected", "x [5] is unexpected"}));
  EXPECT_TRUE(says(error.hint(), {"rename", "cast", "missing", "extra"}));
  EXPECT_EQ(module.bias().sum().item<float>(), 0);
}

TEST(LoadWeights, RefusesAWrongShapeWhateverIsAllowed) {
  SmallHead module;
  const NamedTensors weights = {{"bias", torch::ones({2})}, {"weight", torch::ones({3, 2})}};
  const Error error =
      error_of([&] { load_weights(module, weights, {.cast = true, .allow_missing = true, .allow_extra = true}); });
  EXPECT_TRUE(says(error.message(), {"1 of 2 tensors", "weight is Float [3, 2] and should be Float [2, 3]"}));
  EXPECT_EQ(module.bias().sum().item<float>(), 0);
}

TEST(LoadWeights, CastsBetweenFloatingPointTypesIfAsked) {
  SmallHead module;
  NamedTensors weights = {{"bias", torch::full({2}, 0.1, torch::kBFloat16)},
                          {"weight", torch::ones({2, 3}, torch::kDouble)}};
  EXPECT_TRUE(
      says(error_of([&] { load_weights(module, weights); }).message(),
           {"bias is BFloat16 [2] and should be Float [2]", "weight is Double [2, 3] and should be Float [2, 3]"}));
  load_weights(module, weights, {.cast = true});
  EXPECT_EQ(module.bias()[1].item<float>(), 0.10009765625F);
  EXPECT_EQ(module.weight().sum().item<float>(), 6);
  weights["bias"] = torch::ones({2}, torch::kLong);
  EXPECT_TRUE(says(error_of([&] { load_weights(module, weights, {.cast = true}); }).message(),
                   {"bias is Long [2] and should be Float [2]"}));
}

TEST(LoadWeights, NeedsOneNameOfATiedTensor) {
  TiedHead module;
  const LeftOutWeights left_out = load_weights(module, NamedTensors{{"head", torch::ones({2})}});
  EXPECT_EQ(left_out.missing, Names());
  EXPECT_EQ(module.named_parameters()["embedding"].sum().item<float>(), 2);
  const NamedTensors different = {{"embedding", torch::ones({2})}, {"head", torch::zeros({2})}};
  EXPECT_TRUE(says(error_of([&] { load_weights(module, different); }).message(), {"head and embedding differ"}));
}

TEST(LoadWeights, RefusesTwoTensorsOfOneName) {
  SmallHead module;
  const NamedTensors weights = {{"a", torch::ones({2})}, {"b", torch::ones({2})}, {"weight", torch::ones({2, 3})}};
  const auto renamed = [](const std::string& name) { return name == "weight" ? name : "bias"; };
  EXPECT_TRUE(says(error_of([&] { load_weights(module, weights, {.rename = renamed}); }).message(),
                   {"a and b are both renamed to bias"}));
}

TEST(LoadWeights, ListsTenOfManyDifferencesTheMissingFirst) {
  SmallHead module;
  NamedTensors weights = {{"bias", torch::ones({2})}};
  const auto one = torch::ones({1});
  for (int i = 0; i < 20'000; ++i) weights[str("other.", i)] = one;
  const std::string message = error_of([&] { load_weights(module, weights); }).message();
  EXPECT_TRUE(says(message, {"20001 of 20002", "weight [2, 3] is missing", "other.0 [1] is unexpected", "19991 more"}));
  EXPECT_LT(message.size(), 1000U);
}

TEST(LoadWeights, TakesBuffersToo) {
  torch::nn::BatchNorm1d from(3), to(3);
  from->forward(torch::randn({8, 3}));
  load_weights(*to, named_tensors(*from));
  EXPECT_TRUE(to->running_mean.equal(from->running_mean));
  EXPECT_EQ(to->num_batches_tracked.item<int>(), 1);
}

TEST(LoadWeights, ReadsAFolderOfSeveralFiles) {
  const TempFolder temp;
  const fs::path folder = temp.path();
  SmallHead module;
  save_safetensors(folder / "model-1.safetensors", {{"weight", torch::ones({2, 3})}});
  save_safetensors(folder / "model-2.safetensors", {{"bias", torch::ones({2})}});
  temp.add("model.safetensors.index.json",
           R"({"weight_map": {"weight": "model-1.safetensors", "bias": "model-2.safetensors"}})");
  load_weights(module, folder);
  EXPECT_EQ(module.weight().sum().item<float>(), 6);
  EXPECT_EQ(module.bias().sum().item<float>(), 2);
  fs::remove(folder / "model.safetensors.index.json");
  EXPECT_TRUE(
      says(error_of([&] { load_weights(module, folder); }).message(), {(folder / "model.safetensors").native()}));
}

}  // namespace
}  // namespace tandem
