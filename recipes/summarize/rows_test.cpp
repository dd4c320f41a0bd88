#include "recipes/summarize/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "recipes/summarize/missing_fact_test.h"

namespace tandem::summarize {
namespace {

std::string said(const Error& error) { return str(error.message(), " | ", error.hint()); }

class RowsTest : public testing::Test {
 protected:
  std::vector<SummarySample> read(std::string_view text, Needs needs = Needs::Summary,
                                  const ColumnOptions& columns = {}) {
    return read_rows(temporary_.add("t.csv", text), columns, needs);
  }
  // Without the folder.
  std::string error(std::string_view text, Needs needs = Needs::Summary) {
    return replace_all(said(error_of([&] { read(text, needs); })), temporary_.path() + "/", "");
  }

  TempFolder temporary_;
};

TEST_F(RowsTest, AreNumberedWhereTheyHaveNoNames) {
  const auto numbered = read("summary,dialogue\nS,D\nT,E\n");
  ASSERT_EQ(numbered.size(), 2U);
  EXPECT_EQ(numbered[1].id, "1");
  EXPECT_EQ(numbered[1].dialogue, "E");
  EXPECT_EQ(numbered[1].summary, "T");
  EXPECT_EQ(read("id,summary,dialogue\nx,S,D\n")[0].id, "x");
  EXPECT_EQ(read("who,said,short\nx,D,S\n", Needs::Summary, {"said", "short", "who"})[0].id, "x");
}

TEST_F(RowsTest, ToPredictNeedIdsAndNoSummaries) {
  EXPECT_EQ(read("id,dialogue\n7,D\n", Needs::Id)[0].summary, "");
  EXPECT_EQ(missing_fact(error("dialogue\nD\n", Needs::Id), {"t.csv", "'id'", "dialogue", "--id-column"}), "");
}

TEST_F(RowsTest, ThatAreNoneAreErrorsThatSayWhere) {
  const std::string long_text((1 << 20) + 1, 'a');
  EXPECT_EQ(missing_fact(error("a,summary\nD,S\n"), {"t.csv", "'dialogue'", "a, summary", "--dialogue-column"}), "");
  EXPECT_EQ(missing_fact(error("dialogue,b\nD,S\n"), {"t.csv", "'summary'", "dialogue, b", "--summary-column"}), "");
  EXPECT_EQ(missing_fact(error("dialogue,summary\nD,S\n \t,S\n"), {"t.csv, row 3 (line 3)", "'dialogue'", "empty"}),
            "");
  EXPECT_EQ(missing_fact(error("dialogue,summary\n"), {"t.csv", "no rows"}), "");
  EXPECT_EQ(missing_fact(error("id,dialogue,summary\nx,D,S\ny,D,S\nx,D,S\n"),
                         {"t.csv, row 4 (line 4)", "'x'", "t.csv, row 2 (line 2)", "--id-column"}),
            "");
  EXPECT_EQ(missing_fact(error(str("dialogue,summary\n", long_text, ",S\n")),
                         {"t.csv, row 2 (line 2)", "'dialogue'", "1048577 bytes", "1 MiB"}),
            "");
}

TEST_F(RowsTest, OneInTwentyIsHeldOutAlwaysTheSame) {
  std::string text = "id,dialogue,summary\n";
  for (int i = 0; i < 59; ++i) text += str(i, ",D,S\n");
  const DataOptions options{.train = temporary_.add("train.csv", text)};
  const SummarySets sets = load_sets(options);
  ASSERT_EQ(sets.held_out.size(), 2U);  // 59 / 20
  std::set<std::string> ids;
  for (const auto& row : sets.train) ids.insert(row.id);
  EXPECT_EQ(ids.size(), 57U);
  EXPECT_FALSE(ids.contains(sets.held_out[0].id) || ids.contains(sets.held_out[1].id));
  EXPECT_NE(sets.held_out[0].id, "57");  // at random, and not the last ones
  EXPECT_EQ(load_sets(options).held_out[1].id, sets.held_out[1].id);
}

TEST_F(RowsTest, ComeBackFromAFile) {
  const std::vector<SummarySample> rows = {{"1", "a: \"b\"\nc: d,", "s"}, {"2", "é", "\n t"}};
  const std::string path = temporary_.path() + "/deep.csv";
  write_rows(path, rows);
  const auto again = read_rows(path, {}, Needs::Summary);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].dialogue, rows[0].dialogue);
  EXPECT_EQ(again[1].summary, rows[1].summary);
}

TEST(Data, MayBeBuiltIn) {
  EXPECT_EQ(load_sets({.data = "builtin:dialogues"}).train.size(), 4000U);
  EXPECT_GT(load_sets({.data = "builtin:packages"}).held_out.size(), 50U);
  EXPECT_EQ(missing_fact(said(error_of([] { load_sets({}); })), {"--train train.csv", "--data builtin:dialogues"}), "");
  EXPECT_EQ(missing_fact(said(error_of([] { validate(DataOptions{.data = "dialogues"}); })),
                         {"data is 'dialogues'", "builtin:dialogues", "builtin:packages", "--train"}),
            "");
  EXPECT_EQ(missing_fact(said(error_of([] { validate(DataOptions{.valid = "v.csv"}); })),
                         {"valid is v.csv", "--train train.csv"}),
            "");
}

}  // namespace
}  // namespace tandem::summarize
