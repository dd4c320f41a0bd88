#include "text/byte_alphabet.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ByteAlphabet, WritesEachByteAsOneVisibleCharacter) {
  EXPECT_EQ(visible_bytes(" a\n~"), "ĠaĊ~");
  EXPECT_EQ(visible_bytes(std::string("\0\x7F\x80\xA0\xAD\xFF", 6)), "ĀġĢłŃÿ");
  EXPECT_EQ(visible_bytes("\xC3\xA9"), "Ã©");
}

TEST(ByteAlphabet, ReadsEveryByteBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(bytes_of_visible(visible_bytes(bytes)), bytes);
}

TEST(ByteAlphabet, KnowsNoOtherCharacters) {
  EXPECT_EQ(bytes_of_visible("a b"), std::nullopt);
  EXPECT_EQ(bytes_of_visible("\u0144"), std::nullopt);
  EXPECT_EQ(bytes_of_visible("中"), std::nullopt);
  EXPECT_EQ(bytes_of_visible("\xFF"), std::nullopt);
}

TEST(ByteAlphabet, HasTheOrderOfGpt2) {
  EXPECT_EQ(bytes_in_order()[0], '!');
  EXPECT_EQ(bytes_in_order()[64], 'a');
  EXPECT_EQ(bytes_in_order()[187], 255);
  EXPECT_EQ(bytes_in_order()[188], 0);
  EXPECT_EQ(bytes_in_order()[220], ' ');
  EXPECT_EQ(bytes_in_order()[255], 173);
}

}  // namespace
}  // namespace tandem
