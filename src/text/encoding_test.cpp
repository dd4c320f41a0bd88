#include "text/encoding.h"

#include <gtest/gtest.h>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "text/csv.h"

namespace tandem {
namespace {

// "对话,摘要\n甲：你好，乙。,问好\n", made by Python's encode("gb18030").
const std::string kGbk =
    "\xB6\xD4\xBB\xB0,\xD5\xAA\xD2\xAA\n\xBC\xD7\xA3\xBA\xC4\xE3\xBA\xC3\xA3\xAC\xD2\xD2\xA1\xA3,\xCE\xCA\xBA\xC3\n";
const std::string kDialogue = "甲：你好，乙。";

TEST(Encoding, OfChineseTextIsNamedWithTheCommandThatConvertsIt) {
  const TempFile file(kGbk);
  const Error error = error_of([&] { CsvTable::read(file.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {file.path(), "GB18030", "UTF-8"})) << error.message();
  EXPECT_TRUE(says(error.hint(), {"--encoding gb18030", "iconv -f gb18030 -t utf-8 " + file.path()})) << error.hint();
}

TEST(Encoding, ThatIsGivenIsRead) {
  const TempFile file(kGbk);
  for (const char* encoding : {"gb18030", "gbk", "GBK"}) {
    const CsvTable table = CsvTable::read(file.path(), encoding);
    EXPECT_EQ(table.columns(), (std::vector<std::string>{"对话", "摘要"}));
    EXPECT_EQ(table.column("对话").front(), kDialogue);
  }
}

TEST(Encoding, Utf16IsNamedWithOrWithoutItsMark) {
  const std::string little("\xFF\xFEi\0d\0,\0a\0\n\0", 12);
  const std::string big("\xFE\xFF\0i\0d\0,\0a\0\n", 12);
  for (const auto& [text, encoding] : {std::pair(little, "utf-16"), std::pair(big, "utf-16"),
                                       std::pair(little.substr(2), "utf-16le"), std::pair(big.substr(2), "utf-16be")}) {
    const TempFile file(text);
    const Error error = error_of([&] { CsvTable::read(file.path()); });
    EXPECT_TRUE(says(error.message(), {"UTF-16"})) << error.message();
    EXPECT_TRUE(says(error.hint(), {std::string("--encoding ") + encoding, "iconv"})) << error.hint();
    EXPECT_EQ(CsvTable::read(file.path(), encoding).columns(), (std::vector<std::string>{"id", "a"}));
  }
}

TEST(Encoding, ThatIsUnknownOrWrongIsAnError) {
  EXPECT_EQ(error_of([] { check_encoding("klingon"); }).kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error_of([] { check_encoding("klingon"); }).message(), {"encoding is 'klingon'"}));
  const TempFile file("id,a\n1,\xFF\xFF\n");
  const Error error = error_of([&] { CsvTable::read(file.path(), "gb18030"); });
  EXPECT_TRUE(says(error.message(), {file.path(), "gb18030", "byte 7", "line 2"})) << error.message();
}

TEST(Encoding, OfOtherBytesIsLeftToTheReader) {
  check_is_utf8("caf\xE9 cr\xE8me, tr\xE8s bon", "a.csv");  // Latin-1
  check_is_utf8("a broken \xE4\xBD line", "a.csv");
  check_is_utf8(kDialogue, "a.csv");
  check_is_utf8("", "a.csv");
}

TEST(Encoding, ConvertsTextsOfAnyLength) {
  std::string text;
  std::string wanted;
  for (int i = 0; i < 20'000; ++i) {
    text += "\xC4\xE3";
    wanted += "你";
  }
  EXPECT_EQ(to_utf8(text, "gbk", "a.csv"), wanted);
}

}  // namespace
}  // namespace tandem
