#include "text/rouge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace tandem {
namespace {

void expect_score(const RougeScore& score, double precision, double recall) {
  EXPECT_DOUBLE_EQ(score.precision, precision);
  EXPECT_DOUBLE_EQ(score.recall, recall);
  EXPECT_DOUBLE_EQ(score.f1, precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0);
}

RougeScores score(std::string_view reference, std::string_view prediction, Stemming stemming = Stemming::Porter) {
  return RougeScorer(stemming).score(reference, prediction);
}

TEST(Rouge, CountsWordsPairsAndTheLongestSubsequence) {
  const RougeScores scores =
      score("The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log.");
  expect_score(scores.rouge1, 6.0 / 8, 6.0 / 9);
  expect_score(scores.rouge2, 2.0 / 7, 2.0 / 8);
  expect_score(scores.rouge_l, 5.0 / 8, 5.0 / 9);
  expect_score(scores.rouge_lsum, 5.0 / 8, 5.0 / 9);
  EXPECT_NEAR(scores.rouge1.f1, 0.705882, 1e-6);
  EXPECT_NEAR(scores.rouge2.f1, 0.266667, 1e-6);
  EXPECT_NEAR(scores.rouge_l.f1, 0.588235, 1e-6);
}

TEST(Rouge, CountsNoWordAndNoPairMoreOftenThanEitherTextHasIt) {
  const RougeScores scores = score("a b a b a b c", "a b d a b");
  expect_score(scores.rouge1, 4.0 / 5, 4.0 / 7);
  expect_score(scores.rouge2, 2.0 / 4, 2.0 / 6);
}

TEST(Rouge, IsZeroWithoutWordsOrPairs) {
  expect_score(score("", "a").rouge1, 0, 0);
  expect_score(score("a", "?!\n").rouge_lsum, 0, 0);
  expect_score(score("", "").rouge_l, 0, 0);
  expect_score(score("one", "one").rouge1, 1, 1);
  expect_score(score("one", "one").rouge2, 0, 0);
}

TEST(Rouge, ComparesStemsOfLongWordsOnly) {
  EXPECT_EQ(score("testing tests", "tested test").rouge1.f1, 1);
  EXPECT_EQ(score("testing tests", "tested test", Stemming::None).rouge1.f1, 0);
  EXPECT_EQ(score("as", "a").rouge1.f1, 0);
  EXPECT_EQ(score("ties", "tie").rouge1.f1, 1);
  EXPECT_EQ(score("dogs", "dog").rouge1.f1, 1);
  EXPECT_EQ(score("ads", "ad").rouge1.f1, 0);  // three letters stay as they are
}

TEST(Rouge, TellsWordsOfAnyLengthApart) {
  const std::string twelve(12, 'z');
  expect_score(score(twelve + "Z " + twelve, twelve + " z" + twelve, Stemming::None).rouge1, 1, 1);
  EXPECT_EQ(score(twelve + "y", twelve + "z", Stemming::None).rouge1.f1, 0);
  EXPECT_EQ(score(std::string(11, 'z') + "y", twelve, Stemming::None).rouge1.f1, 0);
  EXPECT_EQ(score("300800009d00c", "07c07786008a0").rouge1.f1, 0);  // to the base of 37, they are 2^64 apart
  EXPECT_EQ(score("internationalizations", "Internationalization").rouge1.f1, 1);
}

TEST(Rouge, SplitsWordsWhereLowerCaseHasNoAsciiLetter) {
  EXPECT_EQ(score("CAFÉ x2", "caf x2").rouge1.f1, 1);
  EXPECT_EQ(score("\u212Aite", "kite").rouge1.f1, 1);    // the Kelvin sign becomes k
  expect_score(score("\u0130x", "i x").rouge2, 1, 1);    // i, a combining dot, x
  EXPECT_EQ(score("a\xE2\x84", "a \xC4").rouge1.f1, 1);  // cut off in the middle
}

TEST(Rouge, TakesTheLinesOfASummaryInAnyOrder) {
  const RougeScores scores = score("a b\n\nc d", "c d\na b\n");
  expect_score(scores.rouge_l, 2.0 / 4, 2.0 / 4);
  expect_score(scores.rouge_lsum, 1, 1);
}

// The example of the ROUGE paper, section 3.2: of w1 w2 w3 w4 w5, the two lines have w1 w2 and w1 w3 w5.
TEST(Rouge, UnitesWhatEachLineHasInCommonWithALineOfTheReference) {
  expect_score(score("w1 w2 w3 w4 w5", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5").rouge_lsum, 4.0 / 10, 4.0 / 5);
}

TEST(Rouge, CountsNoWordOfALineMoreOftenThanThePredictionHasIt) {
  expect_score(score("a\na c", "a b").rouge_lsum, 1.0 / 2, 1.0 / 3);
}

TEST(Rouge, ForgetsThePairBefore) {
  RougeScorer scorer;
  scorer.score("a b c\nd", "d c b a\nb");
  const RougeScores scores = scorer.score("e b", "a b");
  expect_score(scores.rouge1, 1.0 / 2, 1.0 / 2);
  expect_score(scores.rouge2, 0, 0);
  expect_score(scores.rouge_l, 1.0 / 2, 1.0 / 2);
}

// The table that rouge-score fills, and its way back through it.
std::vector<std::size_t> places_by_table(std::span<const WordId> other, std::span<const WordId> text) {
  std::vector<std::vector<int>> table(other.size() + 1, std::vector<int>(text.size() + 1));
  for (std::size_t i = 1; i <= other.size(); ++i) {
    for (std::size_t j = 1; j <= text.size(); ++j) {
      const bool equal = other[i - 1] == text[j - 1];
      table[i][j] = equal ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  std::vector<std::size_t> places;
  for (std::size_t i = other.size(), j = text.size(); i > 0 && j > 0;) {
    if (other[i - 1] == text[j - 1]) {
      places.push_back(--i);
      --j;
    } else {
      --(table[i][j - 1] > table[i - 1][j] ? j : i);
    }
  }
  return places;
}

TEST(Lcs, IsThatOfTheWholeTableForTextsOfManyBlocks) {
  std::mt19937 random(7);
  Lcs lcs;
  for (int round = 0; round < 500; ++round) {
    const std::size_t num_words = 1 + random() % (round % 2 == 0 ? 5 : 300);
    const auto draw = [&] {
      std::vector<WordId> words(random() % 300);
      for (WordId& word : words) word = static_cast<WordId>(random() % num_words);
      return words;
    };
    const std::vector<WordId> text = draw();
    const std::vector<WordId> other = draw();
    lcs.index(text, 300);
    const std::vector<std::size_t> expected = places_by_table(other, text);
    ASSERT_EQ(lcs.length(other), expected.size()) << "round " << round;
    ASSERT_EQ(lcs.places(other), expected) << "round " << round;
  }
}

std::vector<RougeScores> three_pairs() {
  return {{.rouge1 = {1, 0.5, 0.25}, .rouge2 = {}, .rouge_l = {}, .rouge_lsum = {.f1 = 0.5}},
          {.rouge1 = {0, 0.5, 0.5}, .rouge2 = {}, .rouge_l = {}, .rouge_lsum = {.f1 = 1}},
          {.rouge1 = {0.5, 0.5, 0}, .rouge2 = {}, .rouge_l = {}, .rouge_lsum = {.f1 = 0.75}}};
}

TEST(Rouge, IsAveragedNumberByNumber) {
  const RougeScores scores = mean(three_pairs());
  EXPECT_EQ(scores.rouge1.precision, 0.5);
  EXPECT_EQ(scores.rouge1.f1, 0.25);
  EXPECT_EQ(scores.rouge_lsum.f1, 0.75);
  EXPECT_EQ(mean({}).rouge1.f1, 0);
}

// Means and percentiles of the same draws by numpy.
TEST(Rouge, HasIntervalsThatTheSeedAloneDecides) {
  std::vector<RougeScores> pairs(7);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    pairs[i].rouge2 = {.recall = 0.5, .f1 = 1.0 / static_cast<double>(1 + i)};
  const RougeIntervals intervals = bootstrap(pairs, 42);
  EXPECT_DOUBLE_EQ(intervals.low.rouge2.f1, 0.2003316326530612);
  EXPECT_DOUBLE_EQ(intervals.median.rouge2.f1, 0.3619047619047619);
  EXPECT_DOUBLE_EQ(intervals.high.rouge2.f1, 0.6071428571428571);
  EXPECT_EQ(intervals.high.rouge2.recall, 0.5);
  EXPECT_EQ(bootstrap({}, 1).high.rouge1.f1, 0);
}

TEST(Rouge, OfCharactersComparesEachLetterOfAnotherScript) {
  // 今 天 去 爬 山 against 今 天 去 游 泳: 3 of 5 characters, 2 of 4 pairs; punctuation does not count.
  RougeScorer scorer(Stemming::Porter, RougeTokens::Characters);
  const RougeScores scores = scorer.score("今天，去爬山。", "今天去游泳");
  EXPECT_DOUBLE_EQ(scores.rouge1.f1, 0.6);
  EXPECT_DOUBLE_EQ(scores.rouge2.f1, 0.5);
  EXPECT_DOUBLE_EQ(scores.rouge_l.f1, 0.6);
  EXPECT_DOUBLE_EQ(scorer.score("GPT 模型", "gpt模 型!").rouge1.f1, 1);      // gpt is one word
  EXPECT_DOUBLE_EQ(scorer.score("running late", "runs late").rouge1.f1, 1);  // stems, as before
  EXPECT_DOUBLE_EQ(RougeScorer().score("今天，去爬山。", "今天，去爬山。").rouge1.f1, 0);
}

TEST(Rouge, OfBrokenCharactersIsTheSameAsWithoutThem) {
  RougeScorer scorer(Stemming::Porter, RougeTokens::Characters);
  EXPECT_DOUBLE_EQ(scorer.score("a \xE4\xBB b", "a b").rouge1.f1, 1);
}

TEST(Letters, ThatRougeDropsAreCounted) {
  LetterCount chinese;
  chinese.add("我用 GPT 写摘要！");  // 5 of 8
  EXPECT_TRUE(chinese.are_most_dropped());
  EXPECT_NE(chinese.note().find("62 %"), std::string::npos) << chinese.note();
  EXPECT_NE(chinese.note().find("--rouge-tokens characters"), std::string::npos);
  LetterCount french;
  french.add("la crème brûlée, déjà!");
  EXPECT_FALSE(french.are_most_dropped());
  EXPECT_FALSE(LetterCount().are_most_dropped());
}

}  // namespace
}  // namespace tandem
