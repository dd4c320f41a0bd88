#include "models/gpt2/hugging_face.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <torch/types.h>

#include <string>

#include "base/error_test.h"
#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr Gpt2Options kTiny{.layers = 1, .heads = 2, .width = 4, .context = 8, .vocabulary = 10};

std::string config_error(const std::string& text) {
  return error_of([&] { read_hugging_face_config(text, "config.json"); }).message();
}

std::map<std::string, Tensor> parameters_of(const Gpt2& model) {
  std::map<std::string, Tensor> parameters;
  for (const auto& [name, parameter] : model->named_parameters().pairs()) parameters[name] = parameter.detach();
  return parameters;
}

void expect_equal(const std::map<std::string, Tensor>& one, const std::map<std::string, Tensor>& other) {
  EXPECT_EQ(one.size(), other.size());
  for (const auto& [name, tensor] : one) EXPECT_TRUE(other.contains(name) && tensor.equal(other.at(name))) << name;
}

TEST(HuggingFace, ReadsTheConfigThatItWrites) {
  const Gpt2Options options{
      .layers = 3, .heads = 2, .width = 16, .context = 24, .vocabulary = 50, .dropout = 0.25, .gelu = Gelu::Erf};
  EXPECT_EQ(read_hugging_face_config(hugging_face_config(options, 7), ""), options);
}

TEST(HuggingFace, HasTheDefaultsOfTransformers) {
  EXPECT_EQ(read_hugging_face_config(R"({"model_type": "gpt2", "n_inner": null})", ""), Gpt2Options{});
}

TEST(HuggingFace, RejectsUnsupportedModels) {
  EXPECT_TRUE(says(config_error(R"({"model_type": "llama"})"), {"config.json: model_type is \"llama\"", "\"gpt2\""}));
  EXPECT_TRUE(says(config_error(R"({"layer_norm_epsilon": 1e-6})"), {"layer_norm_epsilon is 1e-06", "1e-05"}));
  EXPECT_TRUE(says(config_error(R"({"n_inner": 1000})"), {"n_inner is 1000", "3072"}));
  EXPECT_TRUE(says(config_error(R"({"scale_attn_by_inverse_layer_idx": true})"),
                   {"scale_attn_by_inverse_layer_idx is true", "false"}));
  EXPECT_TRUE(says(config_error(R"({"activation_function": "relu"})"),
                   {"activation_function is \"relu\"", "\"gelu_new\"", "\"gelu\""}));
  EXPECT_TRUE(says(config_error(R"({"attn_pdrop": 0.2})"), {"attn_pdrop is 0.2", "resid_pdrop 0.1"}));
  EXPECT_TRUE(says(config_error(R"({"tie_word_embeddings": false})"), {"tie_word_embeddings is false", "true"}));
}

TEST(HuggingFace, TransposesMatricesButNotEmbeddings) {
  const Gpt2 model(kTiny);
  const auto weights = hugging_face_weights(model);
  EXPECT_EQ(weights.size(), 16U);
  EXPECT_EQ(weights.at("transformer.h.0.attn.c_attn.weight").sizes(), (at::IntArrayRef{4, 12}));
  EXPECT_EQ(weights.at("transformer.h.0.mlp.c_proj.weight").sizes(), (at::IntArrayRef{16, 4}));
  EXPECT_EQ(weights.at("transformer.wte.weight").sizes(), (at::IntArrayRef{10, 4}));
  EXPECT_TRUE(weights.at("transformer.h.0.attn.c_proj.weight")[1][3].equal(
      model->named_parameters()["h.0.attn.c_proj.weight"][3][1]));
}

TEST(HuggingFace, KnowsWeightsWithAndWithoutPrefixHeadAndMasks) {
  const Gpt2 model(kTiny);
  const auto weights = hugging_face_weights(model);
  expect_equal(gpt2_weights(weights), parameters_of(model));
  std::map<std::string, Tensor> others;
  for (const auto& [name, weight] : weights) others[name.substr(12)] = weight;
  others["lm_head.weight"] = others.at("wte.weight");
  others["h.0.attn.bias"] = torch::ones({1, 1, 8, 8});
  others["h.0.attn.masked_bias"] = torch::tensor(-1e4);
  expect_equal(gpt2_weights(others), parameters_of(model));
}

TEST(HuggingFace, RejectsAnUntiedHead) {
  auto weights = hugging_face_weights(Gpt2(kTiny));
  weights["lm_head.weight"] = torch::zeros({10, 4});
  const Error error = error_of([&] { gpt2_weights(weights); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"lm_head.weight", "token embedding"}));
}

TEST(HuggingFace, ExportsZeroBiasesForAModelWithoutBiases) {
  Gpt2Options without = kTiny;
  without.bias = false;
  Gpt2 model(without), other(kTiny);
  const auto weights = gpt2_weights(hugging_face_weights(model));
  EXPECT_EQ(weights.size(), other->named_parameters().size());
  for (auto& [name, parameter] : other->named_parameters().pairs()) parameter.set_data(weights.at(name));
  const Tensor ids = torch::tensor({{1, 2, 3}});
  model->eval();
  other->eval();
  EXPECT_TRUE(model->logits(ids).allclose(other->logits(ids)));
}

}  // namespace
}  // namespace tandem
