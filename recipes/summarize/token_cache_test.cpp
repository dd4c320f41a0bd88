#include "recipes/summarize/token_cache.h"

#include <gtest/gtest.h>

#include "base/temp_test.h"
#include "recipes/summarize/small_tokenizer_test.h"
#include "recipes/summarize/token_file.h"

namespace tandem::summarize {
namespace {

namespace fs = std::filesystem;

const std::vector<SummarySample> kRows = {{"0", "s", "a"},
                                          {"1", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr", "x"},
                                          {"2", "b\xff", "123456789"},
                                          {"3", "b\xff", "y"}};

SampleEncoder cached_encoder(std::int64_t context = 40, const std::string& prefix = "p") {
  return {small_tokenizer(), {.prefix = prefix, .marker = "am"}, context};
}

TEST(TokenCache, IsNamedByAllThatDecidesTheTokens) {
  const fs::path path = token_path("f", cached_encoder(), kRows);
  EXPECT_EQ(path.parent_path(), "f");
  EXPECT_EQ(token_path("f", cached_encoder(), kRows), path);
  EXPECT_NE(token_path("f", cached_encoder(41), kRows), path);
  EXPECT_NE(token_path("f", cached_encoder(40, "q"), kRows), path);
  std::vector<SummarySample> other = kRows;
  other[3].summary = "z";
  EXPECT_NE(token_path("f", cached_encoder(), other), path);
  other = kRows;
  other[0].dialogue = "";
  other[0].summary = "sa";  // the same bytes with another boundary
  EXPECT_NE(token_path("f", cached_encoder(), other), path);
  Vocabulary vocabulary = small_tokenizer().vocabulary();
  vocabulary.merges.clear();
  vocabulary.tokens.pop_back();
  EXPECT_NE(token_path("f", SampleEncoder(Tokenizer(vocabulary), cached_encoder().prompt(), 40), kRows), path);
}

TEST(TokenCache, CountsWhatBecameOfTheRows) {
  const TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "tokens";
  SampleEncoder small = cached_encoder();
  make_token_file(path, small, kRows);
  const TokenFile file(path);
  EXPECT_EQ(file.size(), 3);
  EXPECT_EQ(file.report().num_rows, 4);
  EXPECT_EQ(file.report().num_cut, 1);
  EXPECT_EQ(file.report().num_skipped, 1);
  EXPECT_EQ(file.report().num_replaced, 1);  // of a row that is left out, the dialogue is not looked at
}

TEST(TokenCache, IsMadeOnce) {
  const TempFolder folder;
  const fs::path path = fs::path(folder.path()) / "tokens";
  SampleEncoder small = cached_encoder();
  make_token_file(path, small, kRows);
  const auto made = fs::last_write_time(path);
  make_token_file(path, small, {});
  EXPECT_EQ(fs::last_write_time(path), made);
  EXPECT_EQ(TokenFile(path).size(), 3);
}

}  // namespace
}  // namespace tandem::summarize
