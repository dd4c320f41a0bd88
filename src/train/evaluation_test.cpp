#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/evaluation.h>
#include <tandem/loader.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/text.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;

// Sample i is 100 + i.
struct Hundreds {
  std::int64_t count = 5;

  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t index) const { return 100 + index; }
};

Ids collate(Ids&& samples) { return std::move(samples); }

class EvaluationOfFive : public testing::Test {
 protected:
  std::vector<Ids> evaluated(EvaluationOptions options = {}) {
    std::vector<Ids> batches;
    for (const SampleBatch& batch : evaluate(comm_, sampler_, std::move(options))) batches.push_back(batch.ids);
    return batches;
  }

  Communicator comm_ = Communicator::join();
  Sampler sampler_ = evaluation_sampler(5, 2, comm_.world());
};

TEST_F(EvaluationOfFive, IsOneEpochWithAShortLastBatch) {
  EXPECT_EQ(evaluated(), (std::vector<Ids>{{0, 1}, {2, 3}, {4}}));
}

TEST_F(EvaluationOfFive, BeginsAtTheFirstSampleAndRewindsAfterwards) {
  for (int step = 0; step < 4; ++step) sampler_.next();
  EXPECT_EQ(sampler_.state(), (SamplerState{.seed = 0, .epoch = 1, .cursor = 2}));
  EXPECT_EQ(evaluated(), (std::vector<Ids>{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(sampler_.state(), SamplerState{});
  for (const SampleBatch& batch : evaluate(comm_, sampler_)) {
    if (batch.index_in_epoch == 1) break;
  }
  EXPECT_EQ(sampler_.state(), SamplerState{});
}

TEST_F(EvaluationOfFive, NumbersTheBatchesOfTheSet) {
  Ids numbers;
  for (const SampleBatch& batch : evaluate(comm_, sampler_)) numbers.push_back(batch.index_in_epoch);
  EXPECT_EQ(numbers, (Ids{0, 1, 2}));
}

TEST_F(EvaluationOfFive, WorksOnALoader) {
  const Hundreds dataset;
  for (const int workers : {0, 2}) {
    Loader loader(dataset, sampler_, collate, {.workers = workers});
    for (int times = 0; times < 2; ++times) {
      std::vector<Ids> values;
      for (const auto& [value, samples] : evaluate(comm_, loader)) values.push_back(value);
      EXPECT_EQ(values, (std::vector<Ids>{{100, 101}, {102, 103}, {104}})) << workers << " workers";
    }
  }
}

TEST_F(EvaluationOfFive, TurnsGradientsOffUntilTheLoopIsLeft) {
  const torch::Tensor weight = torch::ones({1}, torch::requires_grad());
  bool is_on_after_round = true;
  for ([[maybe_unused]] const SampleBatch& batch :
       evaluate(comm_, sampler_, {.after_round = [&] { is_on_after_round = torch::GradMode::is_enabled(); }})) {
    EXPECT_FALSE((weight * 2).requires_grad());
  }
  EXPECT_FALSE(is_on_after_round);
  EXPECT_TRUE((weight * 2).requires_grad());
}

TEST_F(EvaluationOfFive, ReleasesItsGuardWhenTheLoopIsLeft) {
  auto guard = std::make_shared<int>();
  const std::weak_ptr<int> watched = guard;
  for ([[maybe_unused]] const SampleBatch& batch : evaluate(comm_, sampler_, {.guard = std::move(guard)})) {
    EXPECT_FALSE(watched.expired());
    break;
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(EvaluationOfFive, TellsItsProgressAfterEachRound) {
  std::vector<std::string> calls;
  evaluated({.after_round = [&] { calls.emplace_back("round"); },
             .on_progress = [&](std::int64_t done, std::int64_t all) { calls.push_back(str(done, '/', all)); }});
  EXPECT_EQ(join(calls, " "), "round 2/5 round 4/5 round 5/5");
}

TEST_F(EvaluationOfFive, EndsTheRoundThatABreakLeavesButNotTheOneThatAnExceptionLeaves) {
  int num_rounds = 0;
  const auto count = [&] { ++num_rounds; };
  for (const SampleBatch& batch : evaluate(comm_, sampler_, {.after_round = count})) {
    if (batch.index_in_epoch == 1) break;
  }
  EXPECT_EQ(num_rounds, 2);
  const auto throw_in_the_loop = [&] {
    for ([[maybe_unused]] const SampleBatch& batch : evaluate(comm_, sampler_, {.after_round = count})) {
      throw std::runtime_error("out of memory");
    }
  };
  EXPECT_THROW(throw_in_the_loop(), std::runtime_error);
  EXPECT_EQ(num_rounds, 2);
}

TEST(Evaluation, OfNoSamplesHasNoBatches) {
  Communicator comm = Communicator::join();
  Sampler sampler = evaluation_sampler(0, 4, comm.world());
  const Hundreds none{.count = 0};
  Loader loader(none, sampler, collate);
  int num_calls = 0;
  const EvaluationOptions options{.after_round = [&] { ++num_calls; },
                                  .on_progress = [&](std::int64_t, std::int64_t) { ++num_calls; }};
  for ([[maybe_unused]] const auto& batch : evaluate(comm, sampler, options)) ++num_calls;
  for ([[maybe_unused]] const auto& batch : evaluate(comm, loader, options)) ++num_calls;
  EXPECT_EQ(num_calls, 0);
}

TEST(Evaluation, RefusesASamplerThatPadsOrBelongsToAnotherRank) {
  Communicator comm = Communicator::join();
  Sampler padded({.num_samples = 5, .batch_size = 2, .shuffle = false}, {});
  const auto evaluate_all = [&](Sampler& sampler) {
    for ([[maybe_unused]] const SampleBatch& batch : evaluate(comm, sampler)) FAIL();
  };
  EXPECT_EQ(error_of([&] { evaluate_all(padded); }).kind(), ErrorKind::Config);
  Sampler foreign = evaluation_sampler(5, 2, {.rank = 1, .size = 3});
  const Error error = error_of([&] { evaluate_all(foreign); });
  EXPECT_EQ(missing_facts(error, ErrorKind::Config, {"rank 1 of 3", "rank 0 of 1", "evaluation_sampler"}), "");
}

}  // namespace
}  // namespace tandem
