#include <gtest/gtest.h>
#include <tandem/sampler.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/text.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;
using Batches = std::vector<SampleBatch>;

constexpr SamplerOptions kTen{
    .num_samples = 10, .batch_size = 2, .batches_per_step = 4, .shuffle = false, .tail = Tail::Pad};

// The micro-batches of the next step, from all ranks.
Batches next_of_all(std::vector<Sampler>& ranks) {
  Batches all;
  for (Sampler& rank : ranks) {
    for (SampleBatch& batch : rank.next()) all.push_back(std::move(batch));
  }
  return all;
}

std::vector<Sampler> samplers_of(const SamplerOptions& options, int num_ranks) {
  std::vector<Sampler> ranks;
  for (int rank = 0; rank < num_ranks; ++rank) ranks.emplace_back(options, Shard{.rank = rank, .size = num_ranks});
  return ranks;
}

Batches next_epoch_of_all(std::vector<Sampler>& ranks) {
  Batches all;
  for (std::int64_t step = 0; step < ranks[0].steps_per_epoch(); ++step) {
    for (SampleBatch& batch : next_of_all(ranks)) all.push_back(std::move(batch));
  }
  return all;
}

Ids counted_of(const Batches& batches) {
  Ids ids;
  for (const SampleBatch& batch : batches)
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.begin() + batch.num_counted);
  return ids;
}

TEST(Sampler, GivesARankItsBlockOfEachStep) {
  Sampler rank(kTen, {.rank = 1, .size = 2});
  EXPECT_EQ(rank.steps_per_epoch(), 2);
  EXPECT_EQ(rank.next(), (Batches{{{4, 5}, 2, 2, 2}, {{6, 7}, 2, 3, 3}}));
}

TEST(Sampler, FillsTheLastStepFromTheBeginningWithSamplesThatDoNotCount) {
  std::vector<Sampler> ranks = samplers_of(kTen, 2);
  next_of_all(ranks);
  EXPECT_EQ(next_of_all(ranks), (Batches{{{8, 9}, 2, 0, 4}, {{0, 1}, 0, 1, 5}, {{2, 3}, 0, 2, 6}, {{4, 5}, 0, 3, 7}}));
  EXPECT_EQ(next_of_all(ranks).front(), (SampleBatch{{0, 1}, 2, 0, 0}));
}

TEST(Sampler, KnowsTheEpochOfTheStepThatItGaveLast) {
  Sampler sampler(kTen, {});
  std::vector<std::string> steps;
  const auto note = [&] { steps.push_back(str(sampler.epoch(), sampler.is_epoch_end() ? " end" : "")); };
  note();
  for (int step = 0; step < 5; ++step) {
    sampler.next();
    note();
  }
  EXPECT_EQ(join(steps, ", "), "0, 0, 0 end, 1, 1 end, 2");
  EXPECT_EQ(sampler.state(), (SamplerState{.seed = 0, .epoch = 2, .cursor = 8}));
  sampler.next();
  sampler.set_state({.seed = 0, .epoch = 7, .cursor = 8});
  note();
  sampler.next();
  note();
  EXPECT_EQ(join(steps, ", "), "0, 0, 0 end, 1, 1 end, 2, 7, 7 end");
}

TEST(Sampler, GoesRoundSeveralTimesWhenAStepIsLargerThanTheSet) {
  Sampler sampler({.num_samples = 3, .batch_size = 2, .batches_per_step = 4, .shuffle = false}, {});
  EXPECT_EQ(sampler.next(), (Batches{{{0, 1}, 2, 0, 0}, {{2, 0}, 1, 1, 1}, {{1, 2}, 0, 2, 2}, {{0, 1}, 0, 3, 3}}));
}

// Guide 003's data: 24,834 rows, 256 a step. A last step of 2 samples would have the weight of one with 256.
TEST(Sampler, LeavesOutAStepThatIsNotFullAndOtherSamplesInEachEpoch) {
  for (const int num_ranks : {1, 2}) {
    std::vector<Sampler> ranks =
        samplers_of({.num_samples = 24'834, .batch_size = 16, .batches_per_step = 16, .seed = 1}, num_ranks);
    EXPECT_EQ(ranks[0].steps_per_epoch(), 97);
    std::vector<Ids> left_out;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      Ids used = counted_of(next_epoch_of_all(ranks));
      EXPECT_EQ(used.size(), 97U * 256);
      EXPECT_EQ(ranks[0].state(), (SamplerState{.seed = 1, .epoch = epoch + 1, .cursor = 0}));
      std::ranges::sort(used);
      Ids all(24'834);
      std::iota(all.begin(), all.end(), 0);
      std::ranges::set_difference(all, used, std::back_inserter(left_out.emplace_back()));
      EXPECT_EQ(left_out.back().size(), 2U);
    }
    EXPECT_NE(left_out[0], left_out[1]);
  }
}

TEST(Sampler, KeepsAStepThatIsNotFullIfItIsTheOnlyOne) {
  std::vector<Sampler> ranks = samplers_of({.num_samples = 400, .batch_size = 16, .batches_per_step = 32}, 2);
  EXPECT_EQ(ranks[1].steps_per_epoch(), 1);
  const Batches batches = next_epoch_of_all(ranks);
  EXPECT_EQ(batches.size(), 32U);
  Ids counted = counted_of(batches);
  std::ranges::sort(counted);
  EXPECT_EQ(counted.size(), 400U);
  EXPECT_EQ(std::ranges::adjacent_find(counted), counted.end());
}

// Such a state comes from a run with another number of samples per step, or with Tail::Pad.
TEST(Sampler, ResumesInTheNextEpochIfTheRestOfOneIsDropped) {
  Sampler sampler({.num_samples = 10, .batch_size = 4, .shuffle = false}, {});
  sampler.set_state({.epoch = 3, .cursor = 8});
  EXPECT_EQ(sampler.state(), (SamplerState{.epoch = 4, .cursor = 0}));
  EXPECT_EQ(sampler.epoch(), 4);
  EXPECT_EQ(sampler.next().front().ids, (Ids{0, 1, 2, 3}));
}

TEST(Sampler, EvaluatesEverySampleOnceWithShortBatches) {
  SamplerOptions options = kTen;
  options.num_samples = 11;
  options.tail = Tail::Short;
  std::vector<Sampler> ranks = samplers_of(options, 2);
  next_of_all(ranks);
  EXPECT_EQ(ranks[0].next(), (Batches{{{8, 9}, 2, 0, 4}, {{10}, 1, 1, 5}}));
  EXPECT_EQ(ranks[1].next(), Batches{});
}

TEST(Sampler, ForEvaluationGivesTheSameBatchesOnAnyNumberOfRanks) {
  for (const int num_ranks : {1, 2, 3, 4, 7}) {
    std::vector<Sampler> ranks;
    for (int rank = 0; rank < num_ranks; ++rank) {
      ranks.push_back(evaluation_sampler(7, 3, {.rank = rank, .size = num_ranks}));
    }
    EXPECT_EQ(counted_of(next_epoch_of_all(ranks)), (Ids{0, 1, 2, 3, 4, 5, 6})) << num_ranks;
  }
  Sampler third = evaluation_sampler(7, 3, {.rank = 2, .size = 4});
  EXPECT_EQ(third.next(), (Batches{{{6}, 1, 2, 2}}));
  Sampler alone = evaluation_sampler(7, 3, {});
  for (const std::int64_t number : {0, 1, 2}) EXPECT_EQ(alone.next().front().index_in_epoch, number);
}

TEST(Sampler, ForEvaluationTakesAnOrderAndAnEmptySet) {
  Sampler some = evaluation_sampler(3, 2, {}, {40, 7, 12});
  EXPECT_EQ(some.next().front().ids, (Ids{40, 7}));
  EXPECT_EQ(some.next().front().ids, (Ids{12}));
  Sampler none = evaluation_sampler(0, 2, {.rank = 1, .size = 2});
  EXPECT_EQ(none.steps_per_epoch(), 0);
  EXPECT_EQ(none.next(), Batches{});
  none.set_state({});
  EXPECT_EQ(none.state(), SamplerState{});
  EXPECT_EQ(error_of([&] { none.set_state({.cursor = 4}); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([] { evaluation_sampler(3, 2, {}, {1, 0}); }).kind(), ErrorKind::Config);
}

TEST(Sampler, ShufflesByTheSeedAndAnewInEachEpoch) {
  Sampler sampler({.num_samples = 10, .batch_size = 5, .batches_per_step = 2, .seed = 1}, {});
  EXPECT_EQ(sampler.next(), (Batches{{{9, 4, 2, 8, 6}, 5, 0, 0}, {{5, 0, 7, 3, 1}, 5, 1, 1}}));
  EXPECT_EQ(sampler.next(), (Batches{{{9, 0, 3, 4, 1}, 5, 0, 0}, {{5, 6, 2, 8, 7}, 5, 1, 1}}));
}

TEST(Sampler, TakesAnOrderOfTheCallers) {
  const EpochOrder backwards = [](std::int64_t num_samples, std::uint64_t, std::int64_t epoch) -> Order {
    return [=](std::int64_t position) { return (num_samples - 1 - position + epoch) % num_samples; };
  };
  Sampler sampler({.num_samples = 4, .batch_size = 4}, {}, backwards);
  EXPECT_EQ(sampler.next().front().ids, (Ids{3, 2, 1, 0}));
  EXPECT_EQ(sampler.next().front().ids, (Ids{0, 3, 2, 1}));
}

class SamplerOfSize : public testing::TestWithParam<std::tuple<std::int64_t, std::int64_t>> {};

TEST_P(SamplerOfSize, GivesTheSameStepsOnAnyNumberOfRanksAndCountsEverySampleOnce) {
  const auto [num_samples, batch_size] = GetParam();
  const SamplerOptions options{
      .num_samples = num_samples, .batch_size = batch_size, .batches_per_step = 4, .seed = 5, .tail = Tail::Pad};
  std::vector<Sampler> one = samplers_of(options, 1);
  std::vector<Sampler> two = samplers_of(options, 2);
  std::vector<Sampler> four = samplers_of(options, 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Batches batches = next_epoch_of_all(one);
    EXPECT_EQ(next_epoch_of_all(two), batches);
    EXPECT_EQ(next_epoch_of_all(four), batches);
    for (const SampleBatch& batch : batches) EXPECT_EQ(std::ssize(batch.ids), batch_size);
    Ids counted = counted_of(batches);
    std::ranges::sort(counted);
    Ids all(num_samples);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(counted, all) << "epoch " << epoch;
  }
}

INSTANTIATE_TEST_SUITE_P(, SamplerOfSize,
                         testing::Combine(testing::Values(1, 7, 16, 61, 200), testing::Values(1, 3, 16)));

TEST(Sampler, ResumesInMidEpochOnAnotherNumberOfRanks) {
  const SamplerOptions options{
      .num_samples = 100, .batch_size = 3, .batches_per_step = 4, .seed = 9, .tail = Tail::Pad};
  std::vector<Sampler> two = samplers_of(options, 2);
  for (int step = 0; step < 12; ++step) next_of_all(two);
  const SamplerState state = two[1].state();
  EXPECT_EQ(state, (SamplerState{.seed = 9, .epoch = 1, .cursor = 36}));
  std::vector<Sampler> four = samplers_of(options, 4);
  for (Sampler& rank : four) rank.set_state(state);
  for (int step = 0; step < 12; ++step) EXPECT_EQ(next_of_all(four), next_of_all(two)) << step;
}

TEST(Sampler, ResumesWithAnotherStepSizeWhereThatFits) {
  Sampler before({.num_samples = 100, .batch_size = 4, .batches_per_step = 4, .seed = 9}, {});
  for (int step = 0; step < 3; ++step) before.next();
  Sampler after({.num_samples = 100, .batch_size = 4, .batches_per_step = 6, .seed = 9}, {});
  after.set_state(before.state());
  EXPECT_EQ(after.next()[0].ids, before.next()[0].ids);
}

TEST(Sampler, RefusesAStateThatIsNotItsOwn) {
  Sampler sampler(kTen, {});
  const auto refusal = [&](const SamplerState& state) { return error_of([&] { sampler.set_state(state); }); };
  EXPECT_EQ(missing_facts(refusal({.seed = 3}), ErrorKind::Config, {"seed 3", "has 0", "--seed 3", "--resume weights"}),
            "");
  EXPECT_EQ(missing_facts(refusal({.epoch = 2, .cursor = 12}), ErrorKind::Config,
                          {"12 samples of epoch 2", "8 samples per step", "divides 12"}),
            "");
  EXPECT_EQ(
      missing_facts(refusal({.epoch = 2, .cursor = 16}), ErrorKind::Config, {"sample 16 of epoch 2", "has 10 samples"}),
      "");
  EXPECT_EQ(missing_facts(refusal({.epoch = -1}), ErrorKind::Config, {"sample 0 of epoch -1", "has 10 samples"}), "");
  EXPECT_EQ(sampler.state(), SamplerState{});
}

TEST(Sampler, NamesTheNearestStepThatRanksCanShare) {
  const auto refusal = [](std::int64_t batches_per_step, int num_ranks) {
    return error_of([&] { Sampler({.num_samples = 10, .batches_per_step = batches_per_step}, {.size = num_ranks}); });
  };
  EXPECT_EQ(missing_facts(refusal(6, 4), ErrorKind::Config, {"6 micro-batches", "4 ranks", "use 4 or 8"}), "");
  EXPECT_EQ(missing_facts(refusal(2, 3), ErrorKind::Config, {"2 micro-batches", "3 ranks", "use 3"}), "");
}

TEST(Sampler, RefusesStepsThatCannotBe) {
  const auto refusal = [](const SamplerOptions& options) { return error_of([&] { Sampler(options, {}); }); };
  EXPECT_EQ(missing_facts(refusal({}), ErrorKind::Data, {"0 samples"}), "");
  EXPECT_EQ(missing_facts(refusal({.num_samples = -1, .tail = Tail::Short}), ErrorKind::Data, {"-1 samples"}), "");
  EXPECT_EQ(missing_facts(refusal({.num_samples = 5, .batch_size = 0}), ErrorKind::Config, {"batch_size 0"}), "");
  EXPECT_EQ(refusal({.num_samples = 5, .batches_per_step = -2}).kind(), ErrorKind::Config);
  EXPECT_EQ(refusal({.num_samples = 5, .batch_size = 1L << 40, .batches_per_step = 1L << 40}).kind(),
            ErrorKind::Config);
  EXPECT_EQ(missing_facts(error_of([] { Sampler(kTen, {.rank = 2, .size = 2}); }), ErrorKind::Config, {"rank 2 of 2"}),
            "");
}

}  // namespace
}  // namespace tandem
