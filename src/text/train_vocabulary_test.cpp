#include "text/train_vocabulary.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>

#include "base/error_test.h"

namespace tandem {
namespace {

using Texts = std::vector<std::string>;

// The merges in order, with the space shown as an underscore.
Texts learned(const Vocabulary& vocabulary) {
  Texts tokens(vocabulary.tokens.begin() + 256, vocabulary.tokens.end());
  for (std::string& token : tokens) std::ranges::replace(token, ' ', '_');
  return tokens;
}

// l o 4, o w 4, _ l 3, w e 1, e r 1: of the two, l is the smaller left id.
const Texts kLow = {"low low low lower"};

TEST(TrainVocabulary, MergesTheMostFrequentPairAndOfEqualsTheLeast) {
  const Vocabulary vocabulary = train_vocabulary(kLow, {.size = 400, .min_count = 1});
  EXPECT_EQ(learned(vocabulary), (Texts{"lo", "low", "_low", "er", "_lower", "<|endoftext|>"}));
  EXPECT_EQ(vocabulary.merges.front(), (Merge{.left = 75, .right = 78, .result = 256}));
  EXPECT_EQ(vocabulary.merges.back(), (Merge{.left = 258, .right = 259, .result = 260}));
  EXPECT_EQ(vocabulary.specials, std::vector<TokenId>{261});
}

TEST(TrainVocabulary, LeavesRarePairsAlone) {
  EXPECT_EQ(learned(train_vocabulary(kLow, {.size = 400})), (Texts{"lo", "low", "_low", "<|endoftext|>"}));
}

TEST(TrainVocabulary, StopsAtTheSizeAskedFor) {
  const Vocabulary vocabulary = train_vocabulary(kLow, {.size = 258});
  EXPECT_EQ(vocabulary.tokens.size(), 258U);
  EXPECT_EQ(learned(vocabulary), (Texts{"lo", "<|endoftext|>"}));
}

TEST(TrainVocabulary, CountsRunsOfOneLetterAsTheyAreMerged) {
  // aaaaa: a a 4 times; then aa aa a: aa aa once and aa a once, and the larger left ids come later.
  const Vocabulary vocabulary = train_vocabulary(Texts{"aaaaa"}, {.size = 400, .min_count = 1});
  EXPECT_EQ(learned(vocabulary), (Texts{"aa", "aaa", "aaaaa", "<|endoftext|>"}));
}

TEST(TrainVocabulary, DoesNotDependOnTheOrderOfTexts) {
  const Texts texts = {"one fish two fish", "red fish", "blue \xFF fish", "one two"};
  const Texts other = {texts[3], texts[2], texts[1], texts[0]};
  EXPECT_EQ(train_vocabulary(texts, {.size = 300}).merges, train_vocabulary(other, {.size = 300}).merges);
}

TEST(TrainVocabulary, RefusesASizeBelowTheNumberOfBytes) {
  const Error error = error_of([] { train_vocabulary(kLow, {.size = 256}); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"256"}));
  EXPECT_EQ(train_vocabulary(Texts{}, {.size = 257}).tokens.size(), 257U);
}

}  // namespace
}  // namespace tandem
