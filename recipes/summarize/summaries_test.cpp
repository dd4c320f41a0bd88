#include "recipes/summarize/summaries.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "recipes/summarize/random_summarizer_test.h"

namespace tandem {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr GenerateOptions kThreeAtATime{.max_new_tokens = 6, .decode_batch = 3};

Summaries written_alone(const std::vector<SummarySample>& rows) {
  Communicator comm = Communicator::join();
  Summarizer model = random_summarizer();
  Summaries summaries;
  write_summaries(comm, model, rows, kThreeAtATime, summaries);
  return summaries;
}

TEST(Order, IsTheLongestFirst) {
  const Rows lengths = {2, 5, 1, 5};
  EXPECT_EQ(by_falling_length(lengths), (Rows{1, 3, 0, 2}));
}

TEST(Summaries, AreThoseOfOneRankOnAnyNumberOfRanks) {
  const std::vector<SummarySample> rows = some_rows(10);
  const Summaries alone = is_rank() ? Summaries() : written_alone(rows);
  std::string expected;
  for (const auto& summary : alone) expected += str(*summary, '|');
  if (!is_rank()) {
    ASSERT_GT(std::ranges::count_if(alone, [](const auto& s) { return !s->empty(); }), 5);
    ::setenv("EXPECTED", expected.c_str(), 1);
  }
  for (const int size : {2, 3}) {
    run_ranks(size, [&](const World&) {
      std::string together;
      for (const auto& summary : written_alone(rows)) together += str(*summary, '|');
      EXPECT_EQ(together, std::getenv("EXPECTED"));
    });
  }
}

TEST(Summaries, ThatAreKnownAreNotWrittenAgain) {
  const std::vector<SummarySample> rows = some_rows(7);
  Communicator comm = Communicator::join();
  Summarizer model = random_summarizer();
  const Summaries all = written_alone(rows);
  Summaries some(rows.size());
  Rows lengths;
  for (const auto& row : rows) lengths.push_back(std::ssize(row.dialogue));
  const Rows order = by_falling_length(lengths);
  for (const std::int64_t row : Rows(order.begin(), order.begin() + 3)) some[row] = "known";  // the first batch
  std::vector<Rows> rounds;
  write_summaries(comm, model, rows, kThreeAtATime, some,
                  [&](std::span<const std::int64_t> done) { rounds.emplace_back(done.begin(), done.end()); });
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0], Rows(order.begin() + 3, order.begin() + 6));
  EXPECT_EQ(rounds[1], Rows(order.begin() + 6, order.end()));
  EXPECT_EQ(some[order[0]], "known");
  for (const std::int64_t row : Rows(order.begin() + 3, order.end())) EXPECT_EQ(some[row], all[row]);
}

TEST(Summaries, AreNotLongerThanThoseThatAreLearned) {
  Communicator comm = Communicator::join();
  Summarizer model = random_summarizer();
  ASSERT_EQ(model.encoder.most_summary(), 10);  // 30 % of 40 are 12, less one, less the marker
  const std::vector<SummarySample> rows = {{"0", std::string(60, 'a'), ""}};
  Summaries summaries;
  write_summaries(comm, model, rows, {.max_new_tokens = 1000, .min_new_tokens = 1000}, summaries);
  EXPECT_TRUE(summaries[0].has_value());  // a thousand new tokens have no room in the context, and would be an Error
}

}  // namespace
}  // namespace tandem
