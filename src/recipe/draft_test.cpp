#include "recipe/draft.h"

#include <gtest/gtest.h>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "recipe/content_key.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

const std::string kKey = content_key("these settings");
const std::string kOtherKey = content_key("other settings");
const std::vector<DraftRow> kFirstTwo = {{2, "c\n\"c\""}, {0, "a"}};
const std::vector<DraftRow> kSecond = {{1, "b"}};

class Drafts : public testing::Test {
 protected:
  fs::path part() const { return output_.native() + ".part"; }
  std::string text() const { return read_file(part()); }

  // A draft with the rows 2 and 0 of three, as a process leaves it that is stopped.
  void write_two_rows() const {
    Draft draft(output_, kKey, 3);
    draft.keep(kFirstTwo);
  }

  TempFolder folder_;
  fs::path output_ = fs::path(folder_.path()) / "out.csv";
};

TEST_F(Drafts, AreContinuedByTheSamePrediction) {
  write_two_rows();
  {
    Draft draft(output_, kKey, 3);
    EXPECT_EQ(draft.rows(), kFirstTwo);
    draft.keep(kSecond);
  }
  const Draft whole(output_, kKey, 3);
  EXPECT_EQ(whole.rows(), (std::vector<DraftRow>{kFirstTwo[0], kFirstTwo[1], kSecond[0]}));
  whole.remove();
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(Drafts, OfAnotherPredictionAreLeftAlone) {
  write_two_rows();
  const std::string before = text();
  const Error error = error_of([&] { Draft(output_, kOtherKey, 3); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_NE(error.message().find(part().native() + " holds 2 rows"), std::string::npos) << error.message();
  EXPECT_NE(error.hint().find("rm " + part().native()), std::string::npos) << error.hint();
  EXPECT_EQ(text(), before);
}

TEST_F(Drafts, WithoutARowAreReplaced) {
  folder_.add("out.csv.part", "\"" + kOtherKey + "\"\n");
  const Draft draft(output_, kKey, 3);
  EXPECT_EQ(text(), "\"" + kKey + "\"\n");
}

TEST_F(Drafts, WithoutARowAreNotKept) {
  { const Draft draft(output_, kKey, 3); }
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(Drafts, LoseOnlyTheLineThatWasCutOff) {
  write_two_rows();
  folder_.add("out.csv.part", text() + "[1,\"bb");
  Draft draft(output_, kKey, 3);
  EXPECT_EQ(draft.rows(), kFirstTwo);
  draft.keep(kSecond);
  EXPECT_TRUE(text().ends_with("\n[1,\"b\"]\n"));
}

TEST_F(Drafts, ThatAreDamagedAreStartedAnew) {
  for (const char* line : {"[3,\"x\"]", "[0,\"twice\"]", "[-1,\"x\"]", "[1]", "{}", "[\"a\",\"b\"]", "nonsense", ""}) {
    write_two_rows();
    folder_.add("out.csv.part", text() + line + "\n");
    const Draft draft(output_, kKey, 3);
    EXPECT_TRUE(draft.rows().empty()) << line;
    EXPECT_EQ(text(), "\"" + kKey + "\"\n");
  }
}

TEST_F(Drafts, DoNotReplaceAFileThatIsNone) {
  folder_.add("out.csv.part", "to do: buy tea\n");
  EXPECT_EQ(error_of([&] { Draft(output_, kKey, 3); }).kind(), ErrorKind::Data);
  EXPECT_EQ(text(), "to do: buy tea\n");
}

TEST_F(Drafts, AreWrittenByOneProcessAtATime) {
  Draft first(output_, kKey, 3);
  for (const std::string& key : {kKey, kOtherKey}) {
    EXPECT_EQ(error_of([&] { Draft(output_, key, 3); }).kind(), ErrorKind::Data);
  }
  first.keep(kFirstTwo);
  EXPECT_EQ(error_of([&] { Draft(output_, kKey, 3); }).kind(), ErrorKind::Data);
  EXPECT_TRUE(text().ends_with("[0,\"a\"]\n"));
}

}  // namespace
}  // namespace tandem
