#include "text/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"

namespace tandem {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// All rows, the header first.
Rows rows_of(const CsvTable& table) {
  Rows rows(table.num_rows() + 1);
  for (const std::string& name : table.columns()) {
    rows[0].push_back(name);
    const auto fields = table.column(name);
    for (std::size_t row = 0; row < fields.size(); ++row) rows[row + 1].emplace_back(fields[row]);
  }
  return rows;
}

Rows parse(std::string_view text) { return rows_of(CsvTable::parse(std::string(text), "t.csv")); }

Error refusal(std::string_view text) {
  return error_of([&] { parse(text); });
}

TEST(Csv, HasFieldsByColumn) {
  const CsvTable table = CsvTable::parse("id,dialogue,summary\n1,hello,hi\n2,,bye\n", "t.csv");
  EXPECT_EQ(table.num_rows(), 2U);
  EXPECT_TRUE(table.has_column("summary"));
  EXPECT_FALSE(table.has_column("Summary"));
  EXPECT_EQ(table.column("dialogue"), (std::vector<std::string_view>{"hello", ""}));
  EXPECT_EQ(table.column("summary"), (std::vector<std::string_view>{"hi", "bye"}));
}

TEST(Csv, TakesAnyLineEndABomAndBlankLines) {
  const Rows expected{{"a", "b"}, {"1", "2"}, {"3", ""}};
  for (const std::string_view end : {"\n", "\r\n", "\r"}) {
    EXPECT_EQ(parse(str("\xEF\xBB\xBF", end, "a,b", end, end, "1,2", end, "3,", end, end)), expected);
    EXPECT_EQ(parse(str("\"a\",b", end, "1,2", end, "3,\"\"")), expected);
  }
  EXPECT_EQ(parse("\xEF\xBB\xBF\"a\"\n\"\"\n"), (Rows{{"a"}, {""}}));
  EXPECT_EQ(parse("a,b"), (Rows{{"a", "b"}}));
}

TEST(Csv, KeepsCommasQuotesAndLineEndsInQuotes) {
  EXPECT_EQ(parse("a,b\n\"1,\r\n2\",\"say \"\"yes\"\"\"\n\"\"\"\",\"x\ry\"\n"),
            (Rows{{"a", "b"}, {"1,\r\n2", "say \"yes\""}, {"\"", "x\ry"}}));
  EXPECT_EQ(parse("a\n5\" disk\n 摘要🙂 \n"), (Rows{{"a"}, {"5\" disk"}, {" 摘要🙂 "}}));
}

TEST(Csv, KeepsItsFieldsWhenItMoves) {
  CsvTable first = CsvTable::parse("a\nx\n", "t.csv");
  const std::vector<std::string_view> fields = first.column("a");
  const CsvTable second = std::move(first);
  EXPECT_EQ(fields[0], "x");
  EXPECT_EQ(second.column("a")[0].data(), fields[0].data());
}

TEST(Csv, TakesAFieldOfTenMegabytes) {
  std::string field;
  for (int i = 0; i < 5'000'000; ++i) field += "\"\n";
  const std::vector<std::string> columns{"id", "dialogue"};
  const CsvTable table = CsvTable::parse(csv_text(columns, Rows{{"1", field}, {"2", "x"}}), "t.csv");
  EXPECT_EQ(table.column("dialogue")[0], field);
  EXPECT_EQ(table.place(1), "t.csv, row 3 (line 5000003)");
}

TEST(Csv, SaysWhereARowBegins) {
  const CsvTable table = CsvTable::parse("a,b\r\n\"1\r\n2\r\n3\r4\n5\",x\r\n\r\n6,7\r\n", "t.csv");
  EXPECT_EQ(table.place(0), "t.csv, row 2 (line 2)");
  EXPECT_EQ(table.place(1), "t.csv, row 3 (line 8)");
}

TEST(Csv, NamesTheQuoteThatIsNeverClosed) {
  const Error error = refusal("id,dialogue\n1,\"a\nb\"\n2,\"c\nd\n");
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {"t.csv", "row 3", "line 4", "'dialogue'", "line 4"}));
  EXPECT_TRUE(says(refusal("id,\"a\n").message(), {"t.csv", "row 1", "line 1", "column 2", "line 1"}));
}

TEST(Csv, RefusesTextAfterAClosingQuote) {
  EXPECT_TRUE(
      says(refusal("id,dialogue\n\"1\",\"a\n\" b\n").message(), {"t.csv", "row 2", "line 2", "'dialogue'", "line 3"}));
}

TEST(Csv, RefusesARowOfAnotherLength) {
  EXPECT_TRUE(
      says(refusal("a,b,c\n1,2,3\n4\n").message(), {"t.csv", "row 3", "line 3", "1 field", "3 columns", "'b'"}));
  const Error error = refusal("a,b\n1,2,3\n");
  EXPECT_TRUE(says(error.message(), {"t.csv", "row 2", "line 2", "3 fields", "2 columns", "'b'"}));
  EXPECT_TRUE(says(error.hint(), {"quotes"}));
}

TEST(Csv, RefusesAZeroByte) {
  EXPECT_TRUE(
      says(refusal(std::string_view("a,b\n1,\0\n", 8)).message(), {"t.csv", "row 2", "line 2", "'b'", "zero byte"}));
  EXPECT_TRUE(says(refusal(std::string_view("\xFF\xFE"
                                            "a\0,\0b\0\n\0",
                                            10))
                       .hint(),
                   {"UTF-8", "UTF-16"}));
}

TEST(Csv, RefusesAnEmptyFileAndAColumnThatIsThereTwice) {
  EXPECT_TRUE(says(refusal("").message(), {"t.csv", "empty"}));
  EXPECT_TRUE(says(refusal("\xEF\xBB\xBF\r\n\n").message(), {"t.csv", "empty"}));
  EXPECT_TRUE(says(refusal("a,b,a\n").message(), {"t.csv", "row 1", "line 1", "'a'"}));
}

TEST(Csv, RefusesMoreColumnsThanASpreadsheetHas) {
  std::string most = "c0", row = "x";
  for (int i = 1; i < 16'384; ++i) {
    most += str(",c", i);
    row += ",x";
  }
  EXPECT_EQ(CsvTable::parse(str(most, '\n', row, '\n'), "t.csv").column("c16383")[0], "x");
  const Error error = refusal(str(most, std::string(1'000'000, ',')));
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {"t.csv", "row 1", "line 1", "16384 columns"}));
  EXPECT_LT(error_of([&] { CsvTable::parse(most, "t.csv").column("text"); }).message().size(), 200U);
}

TEST(Csv, RefusesARowWithoutAnEnd) {
  const std::string many(80'000'000, 'x');
  for (const std::string& row : {many, str('"', many, '"'), replace_all(std::string(40'000'000, 'x'), "xx", "x,")}) {
    const Error error = refusal(str("a\nb\n", row));
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"t.csv", "row 3", "line 3"}));
  }
  EXPECT_TRUE(says(refusal(str("a\nb\n", many)).message(), {"64 MiB"}));
}

TEST(Csv, NamesTheCommandThatUnpacksACompressedFile) {
  using namespace std::string_view_literals;
  const std::vector<std::pair<std::string_view, std::string_view>> files = {
      {"\x1F\x8B\x08\0"sv, "`gzip -dc t.csv > unpacked.csv`"},
      {"PK\x03\x04"sv, "`unzip -p t.csv > unpacked.csv`"},
      {"BZh91AY"sv, "`bzip2 -dc t.csv > unpacked.csv`"},
      {"\xFD\x37zXZ\0"sv, "`xz -dc t.csv > unpacked.csv`"},
      {"\x28\xB5\x2F\xFD\0"sv, "`zstd -dc t.csv > unpacked.csv`"}};
  for (const auto& [begin, command] : files) {
    const Error error = refusal(begin);
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"t.csv", "compressed"}));
    EXPECT_TRUE(says(error.hint(), {command}));
  }
}

TEST(Csv, RefusesAFileThatIsLargerThanTheMemoryBeforeItIsRead) {
  const TempFolder folder;
  const std::string path = folder.add("t.csv", "a\n");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 43);  // with holes, so that it takes no space
  const Error error = error_of([&] { CsvTable::read(path); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_TRUE(says(error.message(), {path, "8796093022208 bytes", "memory"}));
}

TEST(Csv, SuggestsTheColumnThatWasMeant) {
  const CsvTable table = CsvTable::parse("id,dialogue,summary\n", "t.csv");
  const Error slip = error_of([&] { table.column("sumary"); });
  EXPECT_TRUE(says(slip.message(), {"t.csv", "'sumary'", "id, dialogue, summary"}));
  EXPECT_TRUE(says(slip.hint(), {"'summary'"}));
  EXPECT_TRUE(says(error_of([&] { table.column("text"); }).message(), {"'text'", "id, dialogue, summary"}));
}

TEST(Csv, NamesAFileThatCannotBeRead) {
  const TempFolder folder;
  const std::string path = folder.path() + "/no.csv";
  EXPECT_EQ(error_of([&] { CsvTable::read(path); }).message(), "cannot read " + path + ": No such file or directory");
  EXPECT_EQ(error_of([&] { CsvTable::read(folder.path()); }).message(),
            "cannot read " + folder.path() + ": Is a directory");
}

TEST(Csv, IsWrittenWithQuotesWhereTheyAreNeeded) {
  const TempFolder folder;
  const std::string path = folder.path() + "/submission.csv";
  const std::vector<std::string> columns{"id", "summary"};
  write_csv(path, columns, Rows{{"1", "a b"}, {"2", "a, \"b\""}, {"3", "a\nb"}, {"4", ""}});
  EXPECT_EQ(read_file(path), "id,summary\n1,a b\n2,\"a, \"\"b\"\"\"\n3,\"a\nb\"\n4,\n");
  const std::vector<std::string> one{"a"};
  EXPECT_EQ(csv_text(one, Rows{{""}}), "a\n\"\"\n");
}

TEST(Csv, ComesBackAsItWasWritten) {
  std::mt19937 random(11);
  const std::vector<std::string> pieces{",", "\"",   "\n",           "\r",   "\r\n", " ",
                                        "a", "摘要", "\xEF\xBB\xBF", "\xFF", "b,c",  ""};
  const auto field = [&] {
    std::string text;
    for (auto count = random() % 5; count > 0; --count) text += pieces[random() % pieces.size()];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    Rows table(1 + random() % 4, std::vector<std::string>(1 + random() % 3));
    for (std::vector<std::string>& row : table) std::ranges::generate(row, field);
    for (std::size_t i = 0; i < table[0].size(); ++i) table[0][i] += str(i);  // no name twice
    const std::string text = csv_text(table[0], std::span(table).subspan(1));
    ASSERT_EQ(parse(text), table) << text;
  }
}

}  // namespace
}  // namespace tandem
