#include "recipes/summarize/model.h"

#include <gtest/gtest.h>
#include <tandem/safetensors.h>
#include <torch/torch.h>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "models/gpt2/hugging_face.h"
#include "recipes/summarize/random_summarizer_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class SummarizerTest : public testing::Test {
 protected:
  SummarizerTest() { save_summarizer(folder_, model_); }

  std::string said(const std::function<void()>& body) const {
    const Error error = error_of(body);
    return replace_all(str(error.message(), " | ", error.hint()), temporary_.path(), "DIR");
  }
  void expect_equal(const Summarizer& other) {
    const torch::Tensor ids = torch::arange(20).unsqueeze(0);
    EXPECT_TRUE(other.net.ptr()->logits(ids).equal(model_.net->logits(ids)));
  }

  TempFolder temporary_;
  fs::path folder_ = fs::path(temporary_.path()) / "m";
  Summarizer model_ = random_summarizer();
};

TEST_F(SummarizerTest, ComesBackWithItsHabits) {
  const Summarizer again = load_summarizer(folder_);
  expect_equal(again);
  EXPECT_EQ(again.encoder.prompt().prefix, "p");
  EXPECT_EQ(again.encoder.prompt().marker, "m");
  EXPECT_EQ(again.constant, "ab c");
  EXPECT_EQ(again.weights, folder_);
}

TEST_F(SummarizerTest, OfSomebodyElseHasTheGuidesPrompt) {
  fs::remove(folder_ / "summarize.json");
  EXPECT_EQ(error_of([&] { load_summarizer(folder_); }).message(),
            "prefix and marker are 60 tokens, and the context is 40");
}

TEST_F(SummarizerTest, MayLieInSeveralFiles) {
  NamedTensors first, second;
  for (const auto& [name, weight] : load_safetensors(folder_ / "model.safetensors")) {
    (first.size() < 9 ? first : second).emplace(name, weight);
  }
  std::string map;
  for (const auto& [name, weight] : first) map += str('"', name, "\": \"a.safetensors\",");
  for (const auto& [name, weight] : second) map += str('"', name, "\": \"b.safetensors\",");
  map.pop_back();
  save_safetensors(folder_ / "a.safetensors", first);
  save_safetensors(folder_ / "b.safetensors", second);
  temporary_.add("m/model.safetensors.index.json", str("{\"weight_map\": {", map, "}}"));
  fs::remove(folder_ / "model.safetensors");
  expect_equal(load_summarizer(folder_));
  fs::remove(folder_ / "b.safetensors");
  EXPECT_NE(error_of([&] { load_summarizer(folder_); }).message(), "");
}

TEST_F(SummarizerTest, WithAnIndexThatNamesNoFilesIsAnError) {
  temporary_.add("m/model.safetensors.index.json", "{\"weight_map\": [1]}");
  EXPECT_EQ(said([&] { load_summarizer(folder_); }),
            "json: DIR/m/model.safetensors.index.json: expected object, found array | the file may be damaged, or made "
            "by another program or version");
}

TEST_F(SummarizerTest, WithATokenizerThatKnowsMoreIsAnError) {
  Vocabulary vocabulary = small_tokenizer().vocabulary();
  vocabulary.tokens.emplace_back("ab");
  vocabulary.merges.push_back({'a', 'b', 258});
  Tokenizer(vocabulary).save(fs::path(temporary_.path()) / "t");
  EXPECT_EQ(
      said([&] { load_initial(folder_, 0, fs::path(temporary_.path()) / "t"); }),
      "the tokenizer in DIR/t has 259 tokens, and the model in DIR/m knows 258 | take the tokenizer that the model "
      "was trained with");
}

TEST_F(SummarizerTest, BeginsATrainingWithADropoutOfItsOwn) {
  EXPECT_EQ(load_initial(folder_, 0.25, {}).net->options().dropout, 0.25);
  EXPECT_EQ(load_summarizer(folder_).net->options().dropout, 0);
}

TEST_F(SummarizerTest, ThatIsNotThereIsAnError) {
  EXPECT_EQ(said([&] { load_summarizer(temporary_.path()); }),
            "there is no model in DIR | name the folder of a run, a checkpoint in it, or a folder with config.json and "
            "model.safetensors");
}

TEST_F(SummarizerTest, IsFoundByNameInTheCacheOfHuggingFace) {
  const TempVariable home("HF_HOME", temporary_.path().c_str());
  const fs::path snapshot = fs::path(temporary_.path()) / "hub/models--openai-community--gpt2/snapshots/abc";
  EXPECT_EQ(said([] { find_model("gpt2"); }),
            "there is no folder 'gpt2', and no such model in the cache of Hugging Face or /kaggle/input | download it: "
            "python3 -c \"from huggingface_hub import snapshot_download as get; get('gpt2')\"");
  save_summarizer(snapshot, model_);
  EXPECT_EQ(find_model("gpt2"), snapshot);
  EXPECT_EQ(find_model(folder_), folder_);
}

}  // namespace
}  // namespace tandem
