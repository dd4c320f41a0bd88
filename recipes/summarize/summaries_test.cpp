#include "recipes/summarize/summaries.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/temp_test.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "recipes/summarize/random_summarizer_test.h"

namespace tandem::summarize {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr GenerateOptions kThreeAtATime{.max_new_tokens = 6, .decode_batch = 3};

std::vector<std::string> written(const std::vector<SummarySample>& rows, const GenerateOptions& options = kThreeAtATime,
                                 const std::filesystem::path& output = {}) {
  Communicator comm = Communicator::join();
  Summarizer model = random_summarizer();
  Prediction prediction(comm, {.num_rows = std::ssize(rows), .output = output, .key = [] { return "1-2"; }});
  write_summaries(comm, model, rows, options, prediction);
  return prediction.rows();
}

TEST(Order, IsTheLongestFirst) {
  const Rows lengths = {2, 5, 1, 5};
  EXPECT_EQ(by_falling_length(lengths), (Rows{1, 3, 0, 2}));
}

TEST(Summaries, AreThoseOfOneRankOnAnyNumberOfRanks) {
  const std::vector<SummarySample> rows = some_rows(10);
  if (!is_rank()) {
    const std::vector<std::string> alone = written(rows);
    ASSERT_LT(std::ranges::count(alone, ""), 5);
    ::setenv("EXPECTED", join(alone, "|").c_str(), 1);
  }
  for (const int size : {2, 3}) {
    run_ranks(size, [&](const World&) { EXPECT_EQ(join(written(rows), "|"), std::getenv("EXPECTED")); });
  }
}

TEST(Summaries, ThatAreKnownAreNotWrittenAgain) {
  const std::vector<SummarySample> rows = some_rows(7);
  Rows lengths;
  for (const auto& row : rows) lengths.push_back(std::ssize(row.dialogue));
  const Rows order = by_falling_length(lengths);
  std::vector<DraftRow> known;  // the first batch, and one row of the second
  for (std::size_t i = 0; i < 4; ++i) known.push_back({order[i], "known"});
  const TempFolder folder;
  const std::filesystem::path output = std::filesystem::path(folder.path()) / "out.csv";
  Draft(output, "1-2", 7).keep(known);

  std::vector<std::string> expected = written(rows);
  for (const DraftRow& row : known) expected[row.index] = row.text;
  EXPECT_EQ(written(rows, kThreeAtATime, output), expected);
  EXPECT_EQ(Draft(output, "1-2", 7).rows().size(), 7U);  // each row once
}

TEST(Summaries, AreNotLongerThanThoseThatAreLearned) {
  ASSERT_EQ(random_summarizer().encoder.most_summary(), 10);  // 30 % of 40 are 12, less one, less the marker
  const std::vector<SummarySample> rows = {{"0", std::string(60, 'a'), ""}};
  // A thousand new tokens have no room in the context, and would be an Error.
  EXPECT_EQ(written(rows, {.max_new_tokens = 1000, .min_new_tokens = 1000}).size(), 1U);
}

}  // namespace
}  // namespace tandem::summarize
