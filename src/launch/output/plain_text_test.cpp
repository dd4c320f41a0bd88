#include "launch/output/plain_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace tandem {
namespace {

std::string plain(std::string_view output) { return join(plain_lines(output), "|"); }

TEST(PlainLines, HaveNoColoursTitlesOrCursorMovements) {
  EXPECT_EQ(plain("\x1b[1;31mred\x1b[0m \x1b]0;title\atext\x1b[A\x1b"
                  "7"),
            "red text");
  EXPECT_EQ(plain("cut\x1b[3"), "cut");
}

TEST(PlainLines, ShowTheLastStateOfAProgressLine) {
  EXPECT_EQ(plain(" 10%\r 50%\r100%\ndone\r\n"), "100%|done");
  EXPECT_EQ(plain("10%\r20%\r"), "20%");
  EXPECT_EQ(plain("1/9\b\b\b2/9"), "2/9");
}

TEST(PlainLines, ShowEachUnprintableByteAsAQuestionMark) {
  EXPECT_EQ(plain(std::string_view("a\0b\x7f\xff\tc", 7)), "a?b??    c");
  EXPECT_EQ(plain("caf\xc3\xa9 \xf0\x9f\x8f\x96 cut \xf0\x9f"), "caf\xc3\xa9 \xf0\x9f\x8f\x96 cut ??");
  EXPECT_EQ(plain("\xc2\x9b"
                  "31m"),
            "??31m");
}

TEST(PlainLines, LeaveOutEmptyLinesAtTheEndOnly) {
  EXPECT_EQ(plain("a\n\nb\n\n  \n"), "a||b");
  EXPECT_TRUE(plain_lines("").empty());
}

TEST(Shortened, LeavesOutTheMiddleAndSaysHowMuch) {
  const std::vector<std::string> lines = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
  const std::vector<std::string> kept = shortened(lines, 6);
  ASSERT_EQ(kept.size(), 6U);
  EXPECT_EQ(kept[1], "2");
  EXPECT_NE(kept[2].find("4 lines"), std::string::npos);
  EXPECT_EQ(kept[3], "7");
  EXPECT_EQ(shortened(lines, 9), lines);
}

}  // namespace
}  // namespace tandem
