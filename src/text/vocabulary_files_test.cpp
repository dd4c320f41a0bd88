#include "text/vocabulary_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tandem/error.h>

#include <algorithm>
#include <filesystem>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "text/small_vocabulary_test.h"
#include "text/tokenizer.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// ab 256, " ab" 257, <|endoftext|> 258.
Vocabulary ab_vocabulary() { return small_vocabulary({{"a", "b"}, {" ", "ab"}}); }

void expect_same(const Vocabulary& one, const Vocabulary& other) {
  EXPECT_EQ(one.tokens, other.tokens);
  EXPECT_EQ(one.merges, other.merges);
  EXPECT_EQ(one.specials, other.specials);
}

TEST(VocabularyFiles, HoldTheVocabulary) {
  const TempFolder folder;
  Tokenizer(ab_vocabulary()).save(folder.path() + "/new/tokenizer");
  const fs::path saved = folder.path() + "/new/tokenizer";
  expect_same(Tokenizer::load(saved).vocabulary(), ab_vocabulary());
  fs::remove(saved / "tokenizer.json");
  expect_same(Tokenizer::load(saved).vocabulary(), ab_vocabulary());
  EXPECT_EQ(std::distance(fs::directory_iterator(saved), {}), 2) << "nothing is left behind";
}

TEST(VocabularyFiles, AreWrittenInVisibleBytes) {
  EXPECT_EQ(merges_txt_text(ab_vocabulary()), "#version: 0.2\na b\nĠ ab\n");
  const std::string vocab = vocab_json_text(ab_vocabulary());
  EXPECT_TRUE(vocab.starts_with(R"({"!":0,"\"":1,"#":2)")) << vocab;
  EXPECT_TRUE(vocab.ends_with("\"ab\":256,\"Ġab\":257,\"<|endoftext|>\":258}\n")) << vocab;
}

TEST(VocabularyFiles, MayHaveOtherIdsThanOurs) {
  const Vocabulary ours = ab_vocabulary();
  // As `tokenizers` trains: the special token first.
  Vocabulary shifted = ours;
  std::rotate(shifted.tokens.begin(), shifted.tokens.end() - 1, shifted.tokens.end());
  for (Merge& merge : shifted.merges) merge = {merge.left + 1, merge.right + 1, merge.result + 1};
  shifted.specials = {0};
  expect_same(parse_tokenizer_json({tokenizer_json_text(shifted), "t"}), shifted);
  EXPECT_EQ(Tokenizer(shifted).encode("ab<|endoftext|>"), (std::vector<TokenId>{257, 0}));
}

TEST(VocabularyFiles, MayHaveMergesAsPairsAndTokensThatAreOnlyAdded) {
  std::string text = tokenizer_json_text(ab_vocabulary());
  text = replace_all(text, "\"a b\"", R"(["a", "b"])");
  text = replace_all(text, "\"<|endoftext|>\": 258", "\"<|endoftext|>\": 258 ");
  expect_same(parse_tokenizer_json({text, "t"}), ab_vocabulary());
  text = replace_all(text, ",\n      \"<|endoftext|>\": 258 ", "");
  expect_same(parse_tokenizer_json({text, "t"}), ab_vocabulary());
}

TEST(VocabularyFiles, HaveSpecialTokensAsTheyAre) {
  Vocabulary vocabulary = ab_vocabulary();
  vocabulary.tokens.emplace_back("<fin \u00E9>");
  vocabulary.specials.push_back(259);
  const std::string text = tokenizer_json_text(vocabulary);
  EXPECT_NE(text.find("\"content\": \"<fin \u00E9>\""), std::string::npos);
  expect_same(parse_tokenizer_json({text, "t"}), vocabulary);
}

TEST(VocabularyFiles, MayEndLinesAsOtherSystemsDo) {
  expect_same(parse_vocabulary({vocab_json_text(ab_vocabulary()), "v"}, {"a b\r\nĠ ab", "m"}), ab_vocabulary());
}

TEST(VocabularyFiles, AreNamedIfMissing) {
  const TempFolder folder;
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path()); }).message(),
            str("tokenizer: ", folder.path(), " has neither tokenizer.json nor vocab.json with merges.txt"));
  folder.add("vocab.json", vocab_json_text(ab_vocabulary()));
  EXPECT_NE(error_of([&] { Tokenizer::load(folder.path()); }).hint(), "");
}

TEST(VocabularyFiles, AreNoFifos) {
  const TempFolder folder;
  const std::string fifo = folder.path() + "/tokenizer.json";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(says(error_of([&] { Tokenizer::load(folder.path()); }).message(), {fifo}));
}

struct Replacement {
  std::string from;
  std::string to;
};

// The error for our vocab.json or merges.txt with something replaced.
std::string said_of_vocab(const Replacement& change) {
  const std::string text = vocab_json_text(ab_vocabulary());
  const std::string changed = replace_all(text, change.from, change.to);
  EXPECT_NE(changed, text);
  const Error error = error_of([&] { parse_vocabulary({changed, "vocab.json"}, {"a b\nĠ ab\n", "merges.txt"}); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

std::string said_of_merges(const std::string& merges) {
  const std::string vocab = vocab_json_text(ab_vocabulary());
  const Error error = error_of([&] { parse_vocabulary({vocab, "vocab.json"}, {merges, "merges.txt"}); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

TEST(BadVocabularyFiles, AreNamedWithTheTokenAndTheLine) {
  EXPECT_TRUE(says(said_of_vocab({"\"ab\":256", "\n\"ab\":257"}), {"vocab.json", "line 2", "'ab'", "'Ġab'", "257"}));
  EXPECT_TRUE(
      says(said_of_vocab({"\"ab\":256", "\n\"ab\":300"}), {"vocab.json", "line 2", "'ab'", "300", "259", "0", "258"}));
  EXPECT_TRUE(
      says(said_of_vocab({"\"ab\":256", "\"ab\":-1"}), {"vocab.json", "line 1", "'ab'", "-1", "259", "0", "258"}));
  EXPECT_TRUE(says(said_of_vocab({"\"ab\":256", "\"a b\":256"}), {"vocab.json", "line 1", "'a b'"}));
  EXPECT_TRUE(says(said_of_vocab({"\"ab\":256", "\"\":256"}), {"vocab.json", "line 1", "256"}));
  EXPECT_TRUE(says(said_of_vocab({"\"ab\":256", "\"!\":256"}), {"json", "vocab.json", "'!'"}));
  EXPECT_TRUE(says(said_of_vocab({"\"ab\":256", "\"ab\":\"256\""}), {"vocab.json", "integer", "string"}));
  EXPECT_TRUE(says(said_of_vocab({"\"!\"", "\"!!\""}), {"merges.txt", "33", "'!'", "BPE"}));
}

std::string said_of_tokenizer(const std::string& text) {
  return error_of([&] { parse_tokenizer_json({text, "tokenizer.json"}); }).message();
}

TEST(BadVocabularyFiles, MayNotBeJson) {
  const std::string whole = tokenizer_json_text(ab_vocabulary());
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2)}) {
    EXPECT_EQ(said_of_tokenizer(text).rfind("json: tokenizer.json: parse error at line ", 0), 0U);
  }
  EXPECT_TRUE(says(said_of_tokenizer("[]"), {"tokenizer.json", "object", "array"}));
  EXPECT_TRUE(says(said_of_tokenizer("{}"), {"tokenizer.json", "json", "'pre_tokenizer'"}));
}

TEST(BadVocabularyFiles, AreNamedWithTheLineOfTheMerge) {
  EXPECT_TRUE(says(said_of_merges("#version: 0.2\na b\nĠ xy\n"), {"merges.txt", "line 3", "'xy'", "vocab.json"}));
  EXPECT_TRUE(says(said_of_merges("a b\na c\n"), {"merges.txt", "line 2", "'ac'", "vocab.json"}));
  EXPECT_TRUE(says(said_of_merges("a b\nĠ  ab\n"), {"merges.txt", "line 2", "'Ġ  ab'"}));
  EXPECT_TRUE(says(said_of_merges("ab\n"), {"merges.txt", "line 1", "'ab'"}));
  EXPECT_TRUE(says(said_of_merges("a b\na b\nĠ ab\n"), {"merges.txt", "merges 1", "2"}));
}

TEST(BadVocabularyFiles, AreFoundToBeTruncated) {
  EXPECT_TRUE(says(said_of_merges("a b\nĠ a"), {"merges.txt", "line 2", "'Ġa'", "vocab.json"}));
  EXPECT_TRUE(says(said_of_merges("a b\n"), {"merges.txt", "1", "257", "'Ġab'"}));
  EXPECT_TRUE(says(said_of_merges(""), {"merges.txt", "2", "256", "'ab'"}));
}

// The same for our tokenizer.json.
std::string changed_file_message(const Replacement& change) {
  const std::string text = tokenizer_json_text(ab_vocabulary());
  const std::string changed = replace_all(text, change.from, change.to);
  EXPECT_NE(changed, text);
  return said_of_tokenizer(changed);
}

Replacement around(std::string_view special_tokens) {
  return {.from = "\"post_processor\": {\n    \"type\": \"ByteLevel\"",
          .to = str(R"("post_processor": {"type": "TemplateProcessing", "special_tokens": )", special_tokens)};
}

TEST(BadVocabularyFiles, MayBeOfAnotherKindOfTokenizer) {
  const std::string splitter = "\"pre_tokenizer\": {\n    \"type\": ";
  const char* const where = "tokenizer.json";
  EXPECT_TRUE(says(changed_file_message({splitter + "\"ByteLevel\"", splitter + "\"Metaspace\""}),
                   {where, "line 17", "type", "\"Metaspace\""}));
  EXPECT_TRUE(says(changed_file_message(around("[]")), {where, "line 23", "special_tokens", "[]"}));
  EXPECT_EQ(changed_file_message(around("{}")), "") << "as transformers 5 writes it";
  EXPECT_TRUE(says(changed_file_message({"\"BPE\"", "\"Unigram\""}), {where, "line 35", "type", "\"Unigram\""}));
  EXPECT_TRUE(says(changed_file_message({"prefix_space\": false", "prefix_space\": true"}),
                   {where, "line 17", "add_prefix_space", "true"}));
  EXPECT_TRUE(
      says(changed_file_message({"merges\": false", "merges\": true"}), {where, "line 43", "ignore_merges", "true"}));
  EXPECT_TRUE(says(changed_file_message({"lstrip\": false", "lstrip\": true"}), {where, "line 8", "lstrip", "true"}));
  EXPECT_TRUE(
      says(changed_file_message({"normalizer\": null", "normalizer\": 1"}), {where, "line 16", "normalizer", "1"}));
  EXPECT_TRUE(
      says(changed_file_message({"\"id\": 258", "\"id\": 7"}), {where, "line 8", "'<|endoftext|>'", "258", "7"}));
  EXPECT_TRUE(says(changed_file_message({"\"a b\"", "[\"a\"]"}), {where, "merge 1", "1"}));
  EXPECT_TRUE(says(changed_file_message({"\"a b\"", "\"a x\""}), {where, "merge 1", "'ax'", "tokenizer.json"}));
}

TEST(BadVocabularyFiles, AreNotWrittenWhereNothingCanBe) {
  const TempFile file("");
  const Error error = error_of([&] { Tokenizer(ab_vocabulary()).save(file.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {file.path()}));
}

}  // namespace
}  // namespace tandem
