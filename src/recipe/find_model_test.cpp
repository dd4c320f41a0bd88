#include "recipe/find_model.h"

#include <gtest/gtest.h>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(Run, HasADescriptionAndFiles) {
  const TempFolder folder;
  const fs::path run = folder.path();
  EXPECT_EQ(find_description(run), std::nullopt);
  folder.add("model/config.json", "{}");
  folder.add("validation.csv");
  EXPECT_EQ(find_description(run / "checkpoints" / "step-00000001"), run / "model");
  EXPECT_EQ(find_run_file(run / "checkpoints", "validation.csv"), run / "validation.csv");
  EXPECT_EQ(find_run_file(run, "test.csv"), std::nullopt);
  check_model(run);
}

TEST(Run, WithoutACheckpointHasNoWeights) {
  const TempFolder folder;
  const Error error = error_of([&] { find_weights(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_NE(error.message().find(folder.path() + "/checkpoints"), std::string::npos) << error.message();
  folder.add("checkpoints/step-00000007/model.safetensors");
  EXPECT_NE(error_of([&] { find_weights(folder.path()); }).message().find("step-00000007"), std::string::npos);
}

TEST(Model, IsFoundByItsFolderOrByItsNameInTheCacheOfHuggingFace) {
  const TempFolder folder;
  const TempVariable home("HF_HOME", folder.path().c_str());
  const fs::path snapshot = fs::path(folder.path()) / "hub/models--openai-community--tiny/snapshots/0a1b";
  folder.add("hub/models--openai-community--tiny/snapshots/0a1b/config.json", "{}");
  for (const std::string& name : {std::string("tiny"), std::string("openai-community/tiny"), snapshot.native()}) {
    EXPECT_EQ(find_model(name), snapshot) << name;
  }
  EXPECT_EQ(find_model(folder.path() + "/hub"), snapshot);
}

TEST(Model, IsFoundWhereKagglePutsIt) {
  const TempFolder inputs;
  const TempVariable home("HF_HOME", "/nowhere");
  inputs.add("gpt2/pytorch/default/1/config.json", "{}");
  inputs.add("gpt2/pytorch/default/1/model.safetensors");
  inputs.add("gpt2-medium/transformers/large/3/config.json", "{}");
  inputs.add("data/train.csv");
  const fs::path small = fs::path(inputs.path()) / "gpt2/pytorch/default/1";
  EXPECT_EQ(find_model("gpt2", inputs.path()), small);
  EXPECT_EQ(find_model("openai-community/gpt2", inputs.path()), small);
  EXPECT_EQ(find_model(inputs.path() + "/gpt2", "/nowhere"), small);
  EXPECT_EQ(find_model("gpt2-medium", inputs.path()), fs::path(inputs.path()) / "gpt2-medium/transformers/large/3");
  const std::string data = inputs.path() + "/data";
  EXPECT_EQ(error_of([&] { find_model(data, inputs.path()); }).message(), "there is no model in " + data);
}

TEST(Model, OfSeveralInAPlaceIsToBeNamed) {
  const TempFolder inputs;
  const TempVariable home("HF_HOME", "/nowhere");
  inputs.add("gpt2/pytorch/default/2/config.json", "{}");
  const std::string second = inputs.path() + "/gpt2/pytorch/default/2";
  inputs.add("gpt2/pytorch/default/1/config.json", "{}");
  const Error error = error_of([&] { find_model("gpt2", inputs.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {"2 models", "default/1", "default/2"})) << error.message();
  EXPECT_TRUE(says(error.hint(), {"--init " + second})) << error.hint();
  inputs.add("gpt2/pytorch/default/2/model.safetensors");  // the other one has no weights that can be read
  EXPECT_EQ(find_model("gpt2", inputs.path()), second);
}

TEST(Model, ThatIsMissingIsToBeDownloadedOnlyWhereThatCanWork) {
  const TempVariable home("HF_HOME", "/nowhere");
  const auto hint = [] { return error_of([] { find_model("some/other"); }).hint(); };
  EXPECT_EQ(error_of([] { find_model("some/other"); }).kind(), ErrorKind::Data);
  EXPECT_TRUE(says(hint(), {"get('some/other')"})) << hint();
  for (const char* yes : {"1", "true", "YES", "on"}) {
    const TempVariable offline("HF_HUB_OFFLINE", yes);
    EXPECT_TRUE(says(hint(), {"model.safetensors", "--init"})) << hint();
    EXPECT_EQ(hint().find("download"), std::string::npos) << hint();
  }
  const TempVariable kaggle("KAGGLE_KERNEL_RUN_TYPE", "Interactive");
  EXPECT_TRUE(says(hint(), {"Add Input", "other", "/kaggle/input"})) << hint();
  EXPECT_EQ(hint().find("download"), std::string::npos) << hint();
}

TEST(Model, WhoseWeightsArePickledIsToBeConverted) {
  const TempFolder folder;
  folder.add("config.json", "{}");
  folder.add("pytorch_model.bin");
  const Error error = error_of([&] { check_model(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {folder.path(), "pytorch_model.bin", "model.safetensors"})) << error.message();
  EXPECT_TRUE(says(error.hint(), {"tools/convert_ckpt.py " + folder.path()})) << error.hint();
  folder.add("model.safetensors");
  check_model(folder.path());
}

}  // namespace
}  // namespace tandem
