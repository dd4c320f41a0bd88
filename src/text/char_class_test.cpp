#include "text/char_class.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tandem {
namespace {

using enum CharClass;

TEST(CharClass, KnowsLettersOfManyScripts) {
  for (const char32_t letter : std::u32string_view(U"azAZªµÀÿßжαאب中あ한กİʰ𐐀𠀀")) {
    EXPECT_EQ(class_of(letter), Letter) << static_cast<std::uint32_t>(letter);
  }
}

TEST(CharClass, KnowsNumbersThatAreNotDigits) {
  for (const char32_t number : std::u32string_view(U"09²¼٣५Ⅷ①〇𝟘")) {
    EXPECT_EQ(class_of(number), Number) << static_cast<std::uint32_t>(number);
  }
}

TEST(CharClass, KnowsWhiteSpaceByTheProperty) {
  for (const char32_t space : {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029,
                               0x202F, 0x205F, 0x3000}) {
    EXPECT_EQ(class_of(space), Space) << static_cast<std::uint32_t>(space);
  }
  for (const char32_t other : {0x00, 0x08, 0x0E, 0x1C, 0x1F, 0x7F, 0x180E, 0x200B, 0x2060, 0xFEFF}) {
    EXPECT_EQ(class_of(other), Other) << static_cast<std::uint32_t>(other);
  }
}

TEST(CharClass, LeavesMarksSymbolsAndUnassignedToOther) {
  for (const char32_t other : {0x0301, 0x0903, 0x1F600, 0xFE0F, 0x200D, 0xE000, 0x0378, 0xFFFD, 0x10FFFF}) {
    EXPECT_EQ(class_of(other), Other) << static_cast<std::uint32_t>(other);
  }
}

TEST(CharClass, IsThatOfUnicode15) {
  EXPECT_EQ(class_of(0x1E4D0), Letter) << "new in 15.0";
  EXPECT_EQ(class_of(0x1D2C0), Number) << "new in 15.0";
  EXPECT_EQ(class_of(0x323AF), Letter) << "new in 15.0";
  EXPECT_EQ(class_of(0x2EBF0), Other) << "new in 15.1";
  EXPECT_EQ(class_of(0x1C89), Other) << "new in 16.0";
}

}  // namespace
}  // namespace tandem
