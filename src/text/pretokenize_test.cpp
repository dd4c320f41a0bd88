#include "text/pretokenize.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using namespace std::string_literals;

// The pieces with strokes between.
std::string pieces(std::string_view text) {
  std::vector<std::string> found;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* const stop = piece_end(at, end);
    found.emplace_back(at, stop);
    at = stop;
  }
  return join(found, "|");
}

TEST(Pieces, AreWordsWithTheSpaceBeforeThem) {
  EXPECT_EQ(pieces("Hello world, and all of its people."), "Hello| world|,| and| all| of| its| people|.");
  EXPECT_EQ(pieces("x12 34 3.14!? ok"), "x|12| 34| 3|.|14|!?| ok");
  EXPECT_EQ(pieces(""), "");
}

TEST(Pieces, EndEnglishWordsAtTheApostrophe) {
  EXPECT_EQ(pieces("it's we're I've he'd I'm they'll don't"), "it|'s| we|'re| I|'ve| he|'d| I|'m| they|'ll| don|'t");
  EXPECT_EQ(pieces("'sun"), "'s|un");
  EXPECT_EQ(pieces("IT'S 'x 'r 'v'"), "IT|'|S| '|x| '|r| '|v|'");
  EXPECT_EQ(pieces("''s !'s 's"), "''|s| !'|s| '|s") << "only at the beginning of a piece";
}

TEST(Pieces, LeaveTheLastSpaceToWhatFollows) {
  EXPECT_EQ(pieces("a  b"), "a| | b");
  EXPECT_EQ(pieces("a    b  "), "a|   | b|  ");
  EXPECT_EQ(pieces("a \n b"), "a| \n| b");
  EXPECT_EQ(pieces("a\n\nb\n"), "a|\n|\n|b|\n");
  EXPECT_EQ(pieces("a\t\tb\tc"), "a|\t|\t|b|\t|c");
  EXPECT_EQ(pieces(" "), " ");
}

TEST(Pieces, TakeCarriageReturnsAndZerosAsTheyAre) {
  EXPECT_EQ(pieces("a\r\nb"), "a|\r|\n|b");
  EXPECT_EQ(pieces("a\0b\0\0 \0"s), "a|\0|b|\0\0| \0"s);
}

TEST(Pieces, KnowTheSpacesOfUnicode) {
  EXPECT_EQ(pieces("a\u00A0b"), "a|\u00A0|b") << "only the plain space joins a word";
  EXPECT_EQ(pieces("a\u00A0 b"), "a|\u00A0| b");
  EXPECT_EQ(pieces("a \u3000b"), "a| |\u3000|b");
  EXPECT_EQ(pieces("a\u2003\u2003"), "a|\u2003\u2003");
}

TEST(Pieces, KnowLettersMarksNumbersAndEmoji) {
  EXPECT_EQ(pieces("naïve café 中文字 слово"), "naïve| café| 中文字| слово");
  EXPECT_EQ(pieces("e\u0301a"), "e|\u0301|a") << "a combining mark is no letter";
  EXPECT_EQ(pieces("ok 😀👍🏽! 😀"), "ok| 😀👍🏽!| 😀");
  EXPECT_EQ(pieces("x²½ ٣٤ 第3章"), "x|²½| ٣٤| 第|3|章");
}

TEST(Pieces, AreFoundWhereverTheyLieInAVector) {
  for (std::size_t length = 1; length < 40; ++length) {
    const std::string word(length, 'w');
    EXPECT_EQ(pieces(str(word, ' ', word, "é ", word, "1 and so on, to the end")),
              str(word, "| ", word, "é| ", word, "|1| and| so| on|,| to| the| end"));
  }
}

TEST(Pieces, AreTheSameWithVectorsAndWithout) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a", "Zq", "word", "longerwords", " ", " ", "  ",  "\n",
                                          "'", "'s", "é",    "中",          "1", "~", "@[`{"};
  std::string text;
  while (text.size() < 100'000) text += parts[random() % parts.size()];
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; at = piece_end(at, end)) {
    ASSERT_EQ(piece_end(at, end), detail::piece_end_of_any(at, end)) << std::string(at, 30);
  }
}

}  // namespace
}  // namespace tandem
