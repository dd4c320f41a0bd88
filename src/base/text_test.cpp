#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tandem {
namespace {

TEST(Str, JoinsPartsOfDifferentTypes) {
  const std::string owned = "rank ";
  const char* pointer = " of ";
  EXPECT_EQ(str(owned, 3, pointer, std::int64_t{8}, ':', ' ', true, std::string_view(" x")), "rank 3 of 8: true x");
  EXPECT_EQ(str(std::filesystem::path("/a b/c")), "/a b/c");
  EXPECT_EQ(str(std::uint64_t{18446744073709551615U}), "18446744073709551615");
  EXPECT_EQ(str(std::int64_t{-9223372036854775807 - 1}), "-9223372036854775808");
  EXPECT_EQ(str(), "");
}

TEST(Str, WritesFloatsInTheShortestFormThatReadsBack) {
  EXPECT_EQ(str(0.1), "0.1");
  EXPECT_EQ(str(0.1F), "0.1");
  EXPECT_EQ(str(3e-4), "3e-04");
  EXPECT_EQ(str(1e-3), "0.001");
  EXPECT_EQ(str(1e300), "1e+300");
  EXPECT_EQ(str(1.0 / 3.0), "0.3333333333333333");
}

TEST(Fixed, RoundsToTheGivenDecimals) {
  EXPECT_EQ(fixed(3.14159, 2), "3.14");
  EXPECT_EQ(fixed(2.0, 0), "2");
  EXPECT_EQ(fixed(-0.005, 1), "-0.0");
  EXPECT_EQ(fixed(0.125, 2), "0.12");
}

TEST(JoinSome, ListsTenPartsAndCountsTheRest) {
  std::vector<std::string> names(10, "a");
  EXPECT_EQ(join_some(names, "; "), "a; a; a; a; a; a; a; a; a; a");
  EXPECT_EQ(join_some(std::vector<std::string>{}, ", "), "");
  names.resize(1'000'000, "b");
  EXPECT_EQ(join_some(names, ", "), "a, a, a, a, a, a, a, a, a, a, ... and 999990 more");
  EXPECT_EQ(join_some(std::vector<std::string>{std::string(1000, 'x'), "y"}, " "), std::string(200, 'x') + "... y");
  EXPECT_EQ(join_some(std::vector<std::string>{std::string(199, 'x') + "é"}, " "), std::string(199, 'x') + "...");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(split("a,", ','), (std::vector<std::string>{"a", ""}));
}

TEST(Join, PutsTheSeparatorBetweenOnly) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"", ""}, "-"), "-");
}

TEST(CommandLine, IsReadBackByAShellAndHasNoLineBreak) {
  const std::vector<std::string> words = {"./train", "--lr=3e-4", "a b",        "it's",
                                          "",        "$HOME",     "two\nlines", "\x1b[31m\x7f"};
  EXPECT_EQ(command_line(words),
            R"(./train --lr=3e-4 'a b' 'it'\''s' '' '$HOME' 'two'$'\n''lines' ''$'\x1b''[31m'$'\x7f''')");
}

TEST(Trim, TakesWhiteSpaceOffBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(ReplaceAll, DoesNotReplaceInsideWhatItPut) {
  EXPECT_EQ(replace_all("a-b-c", "-", "--"), "a--b--c");
  EXPECT_EQ(replace_all("aaa", "a", "aa"), "aaaaaa");
}

TEST(ToNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(to_integer("-12"), -12);
  EXPECT_EQ(to_integer("12x"), std::nullopt);
  EXPECT_EQ(to_integer(""), std::nullopt);
  EXPECT_EQ(to_integer(" 1"), std::nullopt);
  EXPECT_EQ(to_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(to_unsigned("-1"), std::nullopt);
}

TEST(IsUtf8, AcceptsOneToFourByteSequences) {
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("\xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"));
  EXPECT_TRUE(is_utf8("\xED\x9F\xBF\xEE\x80\x80"));
  EXPECT_TRUE(is_utf8("\xF4\x8F\xBF\xBF"));
}

TEST(IsUtf8, RefusesMalformedBytes) {
  EXPECT_FALSE(is_utf8("\xFF"));
  EXPECT_FALSE(is_utf8("\x80"));
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // overlong '/'
  EXPECT_FALSE(is_utf8("\xE0\x9F\xBF"));      // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // a surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(is_utf8("\xE4\xB8"));          // truncated
}

TEST(Nearest, TakesNoTimeForLongNames) {
  const std::string name(10'000'000, 'x');
  EXPECT_EQ(nearest("xx", std::vector<std::string>{name, "xy"}), "xy");
  EXPECT_EQ(nearest(name, std::vector<std::string>{name + "y"}), std::nullopt);
}

TEST(Nearest, FindsTheWordWithTheSmallestEditDistance) {
  const std::vector<std::string> flags = {"batch-size", "bucket-mb", "seed"};
  EXPECT_EQ(nearest("bach-size", flags), "batch-size");
  EXPECT_EQ(nearest("batch-sizes", flags), "batch-size");
  EXPECT_EQ(nearest("sede", flags), "seed");  // two letters swapped are one slip
  EXPECT_EQ(nearest("learning-rate", flags), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(Nearest, FindsADottedNameByItsLastPart) {
  const std::vector<std::string> flags = {"l", "optimizer.lr"};
  EXPECT_EQ(nearest("lr", flags), "optimizer.lr");
}

TEST(ListText, ShowsWhereEachNumberEnds) {
  EXPECT_EQ(list_text(std::vector<std::int64_t>{2, -1, 30}), "[2, -1, 30]");
  EXPECT_EQ(list_text({}), "[]");
}

TEST(Text, FoldsNumbersOfRanks) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({2, 0}), "ranks 0, 2");
  EXPECT_EQ(ranks_text({0, 1}), "ranks 0, 1");
  EXPECT_EQ(ranks_text({9, 0, 1, 2, 3, 6, 5, 4}), "ranks 0-6, 9");
}

}  // namespace
}  // namespace tandem
