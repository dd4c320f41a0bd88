#include "recipes/summarize/model.h"

#include <gtest/gtest.h>
#include <tandem/checkpoint.h>
#include <torch/types.h>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "models/gpt2/hugging_face.h"
#include "recipes/summarize/missing_fact_test.h"
#include "recipes/summarize/random_summarizer_test.h"

namespace tandem::summarize {
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

TEST_F(SummarizerTest, IsLoadedWithItsPrompt) {
  const Summarizer again = load_summarizer(folder_);
  expect_equal(again);
  EXPECT_EQ(again.encoder.prompt().prefix, "p");
  EXPECT_EQ(again.encoder.prompt().marker, "m");
  EXPECT_EQ(again.constant, "ab c");
  EXPECT_EQ(again.weights, folder_);
}

TEST_F(SummarizerTest, WithoutOurFileHasThePromptOfTheGuides) {
  fs::remove(folder_ / "summarize.json");
  EXPECT_EQ(missing_fact(said([&] { load_summarizer(folder_); }), {"60 tokens", "40"}), "");
}

TEST_F(SummarizerTest, MayBeInShards) {
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
  EXPECT_EQ(
      missing_fact(said([&] { load_summarizer(folder_); }), {"DIR/m/model.safetensors.index.json", "object", "array"}),
      "");
}

TEST_F(SummarizerTest, WithATokenizerThatKnowsMoreIsAnError) {
  Vocabulary vocabulary = small_tokenizer().vocabulary();
  vocabulary.tokens.emplace_back("ab");
  vocabulary.merges.push_back({'a', 'b', 258});
  Tokenizer(vocabulary).save(fs::path(temporary_.path()) / "t");
  EXPECT_EQ(missing_fact(said([&] { load_initial(folder_, 0, fs::path(temporary_.path()) / "t"); }),
                         {"DIR/t", "259", "DIR/m", "258"}),
            "");
}

TEST_F(SummarizerTest, BeginsATrainingWithADropoutOfItsOwn) {
  EXPECT_EQ(load_initial(folder_, 0.25, {}).net->options().dropout, 0.25);
  EXPECT_EQ(load_summarizer(folder_).net->options().dropout, 0);
}

TEST_F(SummarizerTest, ThatIsNotThereIsAnError) {
  EXPECT_EQ(missing_fact(said([&] { load_summarizer(temporary_.path()); }),
                         {"no model in DIR", "config.json", "model.safetensors"}),
            "");
}

}  // namespace
}  // namespace tandem::summarize
