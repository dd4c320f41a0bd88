#include "recipe/cadence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error_test.h"

namespace tandem {
namespace {

TEST(Cadence, IsDueEverySoManyStepsAndAtTheEnd) {
  const Cadence often({.eval_every = 3});
  std::vector<std::int64_t> due;
  for (std::int64_t step = 1; step <= 8; ++step) {
    if (often.is_due(step, 8)) due.push_back(step);
  }
  EXPECT_EQ(due, (std::vector<std::int64_t>{3, 6, 8}));
  EXPECT_FALSE(Cadence({}).is_due(7, 8));
  EXPECT_TRUE(Cadence({}).is_due(8, 8));
}

TEST(Cadence, KeepsTheBest) {
  Cadence lower({});
  EXPECT_EQ(lower.best(), std::nullopt);
  EXPECT_TRUE(lower.record(10, 3.5));
  EXPECT_TRUE(lower.record(20, 3.0));
  EXPECT_FALSE(lower.record(30, 3.0));
  EXPECT_FALSE(lower.record(40, std::nan("")));
  EXPECT_EQ(lower.best(), 3.0);
  EXPECT_EQ(lower.best_step(), 20);
  EXPECT_EQ(lower.num_without_improvement(), 2);

  Cadence higher({}, Better::Higher);
  EXPECT_FALSE(higher.record(5, std::nan("")));
  EXPECT_TRUE(higher.record(10, 0.1));
  EXPECT_TRUE(higher.record(20, 0.2));
  EXPECT_FALSE(higher.record(30, 0.15));
}

TEST(Cadence, IsExhaustedAfterAsManyEvaluationsInARowAsThePatience) {
  Cadence cadence({.eval_every = 1, .patience = 2});
  cadence.record(1, 3);
  cadence.record(2, 4);
  EXPECT_FALSE(cadence.is_exhausted());
  cadence.record(3, 2);
  cadence.record(4, 2.5);
  EXPECT_FALSE(cadence.is_exhausted());
  cadence.record(5, 2.1);
  EXPECT_TRUE(cadence.is_exhausted());
  EXPECT_EQ(cadence.why_exhausted(), "--patience 2: the best evaluation was at step 3");

  Cadence endless({.eval_every = 1});
  for (int step = 1; step < 100; ++step) endless.record(step, step);
  EXPECT_FALSE(endless.is_exhausted());
}

TEST(Cadence, CountsOnFromItsState) {
  const CadenceOptions options{.eval_every = 1, .patience = 2};
  Cadence before(options);
  Cadence fresh(options);
  fresh.load_state(before.state());
  EXPECT_EQ(fresh.best(), std::nullopt);

  before.record(7, 0.1);
  before.record(8, 0.2);
  Cadence after(options);
  after.load_state(before.state());
  EXPECT_EQ(after.best(), 0.1);  // the same bits
  EXPECT_EQ(after.best_step(), 7);
  EXPECT_FALSE(after.record(9, 0.3));
  EXPECT_TRUE(after.is_exhausted());
  EXPECT_EQ(error_of([&] { after.load_state("{}"); }).kind(), ErrorKind::Data);
}

TEST(Cadence, RefusesAPatienceThatWouldNeverBeUsed) {
  validate(CadenceOptions{.eval_every = 5, .patience = 3});
  const Error error = error_of([] { validate(CadenceOptions{.eval_every = 0, .patience = 3}); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_NE(error.hint().find("--eval-every"), std::string::npos);
  EXPECT_EQ(error_of([] { validate(CadenceOptions{.eval_every = -1}); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([] { validate(CadenceOptions{.eval_every = 1, .patience = -1}); }).kind(), ErrorKind::Config);
}

}  // namespace
}  // namespace tandem
