#include "launch/output/drawn_lines.h"

#include <gtest/gtest.h>

#include <array>

#include "base/text.h"

namespace tandem {
namespace {

using namespace std::string_view_literals;

DrawnLines::Time at(int second) { return DrawnLines::Time(std::chrono::seconds(second)); }

std::string drawn_at_once(std::string_view bytes) {
  DrawnLines lines;
  const std::string complete = lines.take(bytes, at(0));
  return complete + lines.end();
}

std::string drawn_by_the_byte(std::string_view bytes) {
  DrawnLines lines;
  std::string text;
  for (const char byte : bytes) text += lines.take({&byte, 1}, at(0));
  return text + lines.end();
}

struct DrawnCase {
  std::string_view name;
  std::string_view bytes;
  std::string_view lines;
};

constexpr std::array kDrawnCases = {
    DrawnCase{"plain", "one\ntwo\n\nfour\n", "one\ntwo\n\nfour\n"},
    DrawnCase{"crlf", "one\r\ntwo\r\n", "one\ntwo\n"},
    DrawnCase{"no newline at the end", "one\ntwo", "one\ntwo\n"},
    DrawnCase{"bar", "\r 1%|#   |\r50%|##  |\r100%|####|\ndone\n", "100%|####|\ndone\n"},
    DrawnCase{"shorter state", "step 100\rdone\x1b[K\nx\n", "done\nx\n"},
    DrawnCase{"rest of a longer state", "step 100\rdone\n", "done 100\n"},
    DrawnCase{"padding", "step 100\rdone     \n", "done\n"},
    DrawnCase{"colours", "\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[m\n", "red and blue\n"},
    DrawnCase{"our own bar", "\r[\x1b[32m##\x1b[0m..] 50%\x1b[J\r\x1b[Jevaluated\n[###.] 75%\x1b[J\rlast\x1b[J\n",
              "evaluated\nlast\n"},
    DrawnCase{"title", "\x1b]0;a title\atext\x1b]8;;link\x1b\\ more\n", "text more\n"},
    DrawnCase{"UTF-8", "\r\xe2\x96\x88\xe2\x96\x88 50%\r\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88 99%\n",
              "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88 99%\n"},
    DrawnCase{"backspaces", "loading |\b/\b-\bok\n", "loading ok\n"},
    DrawnCase{"tab", "a\tb\n", "a\tb\n"},
    DrawnCase{"bell", "a\ab\n", "ab\n"},
    DrawnCase{"nothing", "", ""},
    // tqdm: the outer bar, then the inner one a row below. The first state of the outer bar was complete when it was
    // left.
    DrawnCase{"nested bars",
              "\router 0\n\rinner 0\x1b[A\n\rinner 1\x1b[A\router 1\n\rinner 2\x1b[A\router 2\n\rinner 3\x1b[A\n\n"
              "end\n"sv,
              "outer 0\nouter 2\ninner 3\nend\n"},
    DrawnCase{"whole screen", "before\nhalf\x1b[2J\x1b[Hafter\n", "before\nhalf\nafter\n"},
};

TEST(DrawnLines, AreThoseThatRemainOnTheScreen) {
  for (const DrawnCase& one : kDrawnCases) {
    EXPECT_EQ(drawn_at_once(one.bytes), one.lines) << one.name;
    EXPECT_EQ(drawn_by_the_byte(one.bytes), one.lines) << one.name;
  }
}

TEST(DrawnLines, ComeAsSoonAsTheyAreComplete) {
  DrawnLines lines;
  EXPECT_EQ(lines.take("one\ntw", at(0)), "one\n");
  EXPECT_EQ(lines.take("o\n", at(0)), "two\n");
  EXPECT_EQ(lines.end(), "");
}

// Hours of training without a newline.
TEST(DrawnLines, OfARedrawnLineComeInOneStateEveryTenSeconds) {
  for (const std::string_view end : {"\x1b[K"sv, "\x1b[J"sv, ""sv}) {
    DrawnLines lines;
    std::string text;
    for (int second = 1; second <= 35; ++second) {
      text += lines.take(str("\r\x1b[32mstep ", second, "\x1b[0m", end), at(second));
    }
    EXPECT_EQ(text, "step 10\nstep 20\nstep 30\n");
    EXPECT_EQ(lines.end(), "step 35\n");
  }
}

TEST(DrawnLines, ThatAreErasedForOthersAreKeptIfTheyStoodForLong) {
  DrawnLines lines;
  EXPECT_EQ(lines.take("\rstep 100", at(1)), "");
  EXPECT_EQ(lines.take("\r\x1b[Jevaluated\nstep 101", at(12)), "step 100\nevaluated\n");
  EXPECT_EQ(lines.take("\x1b[2K\revaluated\nstep 102", at(13)), "evaluated\n");
  EXPECT_EQ(lines.take("\x1b[2K\revaluated\n", at(22)), "step 102\nevaluated\n");
}

TEST(DrawnLines, AreKeptInNoStateThatWasHalfDrawn) {
  DrawnLines lines;
  EXPECT_EQ(lines.take("first longer state\rsecond", at(0)), "");
  EXPECT_EQ(lines.take(" state\x1b[K", at(11)), "");
  EXPECT_EQ(lines.take("\rthird", at(12)), "second state\n");
}

TEST(DrawnLines, WithoutARedrawAreNotKeptTwice) {
  DrawnLines lines;
  EXPECT_EQ(lines.take("one", at(0)), "");
  EXPECT_EQ(lines.take(" and more\x1b[K", at(20)), "");
  EXPECT_EQ(lines.take("\r\ntwo\r", at(40)), "one and more\n");
  EXPECT_EQ(lines.take("\n", at(60)), "two\n");
}

TEST(DrawnLines, DoNotGrowWithoutEnd) {
  DrawnLines lines;
  const std::string text = lines.take(std::string(200'000, 'x'), at(0));
  EXPECT_EQ(text.size(), 3 * (65536 + 1));
  EXPECT_EQ(lines.take("\x1b[999999999B", at(0)).size(), 200'000 - 3 * 65536 + 100);
}

}  // namespace
}  // namespace tandem
