#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace tandem {
namespace {

// The result of Python's decode(errors="replace"), with U+FFFD shown as a question mark.
std::string repaired(std::string_view text) { return replace_all(repair_utf8(text).text, "\uFFFD", "?"); }

TEST(Utf8, ReadsCharactersOfEveryLength) {
  const std::string text = "a\u00E9\u4E2D\U0001F600";
  EXPECT_EQ(first_code_point(text.data()).value, U'a');
  EXPECT_EQ(first_code_point(text.data() + 1).value, 0xE9U);
  EXPECT_EQ(first_code_point(text.data() + 3).value, 0x4E2DU);
  EXPECT_EQ(first_code_point(text.data() + 6).value, 0x1F600U);
  EXPECT_EQ(first_code_point(text.data() + 6).length, 4);
  EXPECT_EQ(valid_utf8_prefix(text), text.size());
}

TEST(Utf8, ReplacesATruncatedCharacterOnce) {
  EXPECT_EQ(repaired("a\xE2\x82z"), "a?z");
  EXPECT_EQ(repaired("a\xF0\x9F\x98"), "a?");
  EXPECT_EQ(repaired("\xE2\x82\xE2\x82\xAC"), "?\u20AC");
}

TEST(Utf8, ReplacesInvalidBytesOneByOne) {
  EXPECT_EQ(repaired("\x80\xBF\xFF\xC0\xAF"), "?????");
  EXPECT_EQ(repaired("\xED\xA0\x80"), "???") << "a surrogate";
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "????") << "beyond U+10FFFF";
  EXPECT_EQ(repaired("\xE0\x80\xAF"), "???") << "overlong";
  EXPECT_EQ(repaired("\xF0\x80\x80"), "???") << "overlong";
}

TEST(Utf8, CountsWhatItReplaces) {
  EXPECT_EQ(repair_utf8("plain").num_replaced, 0);
  EXPECT_EQ(repair_utf8("\xFF, \xE2\x82, \xED\xA0\x80").num_replaced, 5);
}

TEST(Utf8, FindsTheFirstBadByteBehindAnyNumberOfGoodOnes) {
  for (std::size_t length = 0; length < 40; ++length) {
    EXPECT_EQ(valid_utf8_prefix(std::string(length, 'x') + "\xC3"), length);
    EXPECT_EQ(valid_utf8_prefix(std::string(length, 'x') + "\u00E9\xC3 tail of the text"), length + 2);
  }
}

}  // namespace
}  // namespace tandem
