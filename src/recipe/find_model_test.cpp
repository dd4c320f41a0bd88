#include "recipe/find_model.h"

#include <gtest/gtest.h>

#include "base/error_test.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(Run, IsThatOfAFolderOfItsCheckpointsAndOfOneOfThem) {
  for (const char* from : {"/a/run", "/a/run/", "/a/./run", "/a/run/checkpoints", "/a/run/checkpoints/",
                           "/a/run/checkpoints/step-00000002", "/a/run/checkpoints/step-00000002/"}) {
    EXPECT_EQ(run_of(from), "/a/run") << from;
  }
  EXPECT_EQ(run_of("run"), fs::current_path() / "run");
  EXPECT_EQ(run_of("/a/run/exports/hf"), "/a/run/exports/hf");
}

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
  const Error missing = error_of([] { find_model("some/other"); });
  EXPECT_EQ(missing.kind(), ErrorKind::Data);
  EXPECT_NE(missing.hint().find("get('some/other')"), std::string::npos);
  EXPECT_EQ(error_of([&] { find_model(folder.path()); }).message(), "there is no model in " + folder.path());
}

}  // namespace
}  // namespace tandem
