#include "base/printable.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

struct Case {
  std::string_view text;
  std::string_view expected;
};

TEST(PrintableLine, HasNoEscapeSequencesAndHidesNothing) {
  using namespace std::string_view_literals;
  const Case cases[] = {
      {"plain caf\xc3\xa9 \xf0\x9f\x8f\x96"sv, "plain caf\xc3\xa9 \xf0\x9f\x8f\x96"sv},
      {"\x1b[1;31mred\x1b[0m"sv, "red"sv},
      {"\x1b[2J\x1b[H\x1b[1Aup"sv, "up"sv},
      {"\x1b]0;title\atext"sv, "text"sv},
      {"\x1b]8;;address\x1b\\link\x1b]8;;\x1b\\"sv, "link"sv},
      {"\x1bPq#0\x1b\\sixel"sv, "sixel"sv},
      {"\x1b]0;no end, so it is shown"sv, "0;no end, so it is shown"sv},
      {"\x1b[31"sv, ""sv},
      {"\x1b[3\nnext"sv, " next"sv},
      {"\x1b"sv, ""sv},
      {"\x1b\x1b[31mtwice"sv, "twice"sv},
      {"a\0b\x7f\xff"sv, "a?b??"sv},
      {"\xc2\x9b"
       "31m"sv,
       "??31m"sv},
      {"two\nlines\r\n"sv, "two lines  "sv},
      {"1/9\b2/9\t."sv, "1/9?2/9    ."sv},
  };
  for (const Case& one : cases) EXPECT_EQ(printable_line(one.text), one.expected);
}

TEST(PrintableText, KeepsLinesAndIndentsAllButTheFirst) {
  EXPECT_EQ(printable_text("\x1b[31ma\n\ntandem: b\n", "  "), "a\n  \n  tandem: b\n  ");
}

}  // namespace
}  // namespace tandem
