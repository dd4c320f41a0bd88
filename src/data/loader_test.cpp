#include <gtest/gtest.h>
#include <tandem/loader.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "base/fd.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;

Ids collate(Ids&& samples) { return std::move(samples); }

// Sample i is i * i + 1.
struct Squares {
  std::int64_t count = 10;

  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t index) const { return index * index + 1; }
};

Ids squares_of(const Ids& ids) {
  Ids squares;
  for (const std::int64_t id : ids) squares.push_back(id * id + 1);
  return squares;
}

struct KeyedSquares : Squares {
  std::string content_key() const { return "squares"; }
};

struct WithBad {
  std::int64_t count = 8;
  std::set<std::int64_t> bad;

  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t index) const {
    if (bad.contains(index)) throw std::runtime_error("not a JPEG");
    return 100 + index;
  }
  std::string name(std::int64_t index) const { return str("images/", index, ".jpg"); }
};

Sampler in_order(std::int64_t num_samples, std::int64_t batch_size, std::int64_t batches_per_step = 1) {
  return {
      {.num_samples = num_samples, .batch_size = batch_size, .batches_per_step = batches_per_step, .shuffle = false},
      {}};
}

Sampler padded(std::int64_t num_samples, std::int64_t batch_size) {
  return {{.num_samples = num_samples, .batch_size = batch_size, .shuffle = false, .tail = Tail::Pad}, {}};
}

TEST(Loader, HasTheContentKeyOfItsDatasetIfThatHasOne) {
  const Squares squares;
  const KeyedSquares keyed;
  EXPECT_EQ((Loader<Squares, Ids>(squares, in_order(10, 2), collate).content_key()), "");
  EXPECT_EQ((Loader<KeyedSquares, Ids>(keyed, in_order(10, 2), collate).content_key()), "squares");
}

TEST(Loader, GivesTheSameWhateverTheNumberOfWorkers) {
  const Squares dataset{.count = 50};
  const SamplerOptions options{.num_samples = 50, .batch_size = 3, .batches_per_step = 4, .seed = 6};
  for (const int workers : {0, 1, 3, 8}) {
    Sampler sampler(options, {.rank = 1, .size = 2});
    Loader loader(dataset, sampler, collate, {.workers = workers});
    for (int step = 0; step < 12; ++step) {
      std::vector<SampleBatch> given;
      for (const auto& [value, samples] : loader.next()) {
        given.push_back(samples);
        EXPECT_EQ(value, squares_of(samples.ids)) << workers << " workers, step " << step;
      }
      EXPECT_EQ(given, sampler.next()) << workers << " workers, step " << step;
    }
  }
}

// The counted samples of one epoch on real ranks, each as "used STEP MICRO-BATCH: SAMPLE".
std::vector<std::string> record_of(int num_ranks) {
  const auto write_record = [](const World& world) {
    const Squares dataset{.count = 90};
    const SamplerOptions options{
        .num_samples = 90, .batch_size = 3, .batches_per_step = 4, .seed = 6, .tail = Tail::Pad};
    Loader loader(dataset, Sampler(options, shard_of(world)), collate, {.workers = 2});
    std::string record;
    for (int step = 0; step < 8; ++step) {
      for (const auto& [value, samples] : loader.next()) {
        for (std::int64_t i = 0; i < samples.num_counted; ++i) {
          record += str("used ", step, ' ', samples.index_in_step, ": ", samples.ids[i], '\n');
        }
      }
    }
    write_all(STDOUT_FILENO, record);
  };
  const auto ends = run_ranks_to_end(num_ranks, write_record, std::chrono::seconds(60));
  EXPECT_EQ(failures(ends), "");
  std::vector<std::string> lines;
  for (const RankOutcome& end : ends) {
    for (const std::string& line : split(end.output, '\n')) {
      if (line.starts_with("used ")) lines.push_back(line);
    }
  }
  std::ranges::sort(lines);
  return lines;
}

TEST(Loader, UsesTheSameSamplesOnOneTwoAndFourRealRanksAndEachOnce) {
  const std::vector<std::string> one = record_of(1);
  EXPECT_EQ(record_of(2), one);
  EXPECT_EQ(record_of(4), one);
  std::set<std::string> samples;
  for (const std::string& line : one) samples.insert(line.substr(line.find(": ")));
  EXPECT_EQ(one.size(), 90U);
  EXPECT_EQ(samples.size(), 90U);
}

// Reading sample 0 ends only after sample 5, two steps later, was read.
TEST(Loader, KeepsTheOrderWhenASampleIsSlow) {
  struct Slow {
    std::latch& later;
    std::int64_t size() const { return 6; }
    std::int64_t get(std::int64_t index) const {
      if (index == 0) later.wait();
      if (index == 5) later.count_down();
      return index;
    }
  };
  std::latch later(1);
  const Slow dataset{later};
  Loader loader(dataset, in_order(6, 2), collate, {.workers = 2, .prefetch = 2});
  EXPECT_EQ(loader.next()[0].value, (Ids{0, 1}));
  EXPECT_EQ(loader.next()[0].value, (Ids{2, 3}));
}

struct Counting {
  std::atomic<int>& num_reads;
  std::int64_t size() const { return 1000; }
  std::int64_t get(std::int64_t index) const {
    ++num_reads;
    return index;
  }
};

TEST(Loader, ReadsAheadAsManyStepsAsAskedAndNotWithoutWorkers) {
  std::atomic<int> num_reads = 0;
  const Counting dataset{num_reads};
  {
    Loader loader(dataset, in_order(1000, 5), collate, {.workers = 0});
    loader.next();
    EXPECT_EQ(num_reads, 5);
  }
  num_reads = 0;
  {
    Loader loader(dataset, in_order(1000, 5), collate, {.workers = 3, .prefetch = 2});
    EXPECT_EQ(num_reads, 0);
    loader.next();
    while (num_reads < 15) std::this_thread::yield();
  }
  EXPECT_EQ(num_reads, 15);
}

TEST(Loader, MayGoWhileMuchIsStillToBeRead) {
  const Squares dataset{.count = 1000};
  for (int i = 0; i < 20; ++i) {
    Loader loader(dataset, in_order(1000, 5), collate, {.workers = 3, .prefetch = 50});
    EXPECT_EQ(loader.next()[0].value, (Ids{1, 2, 5, 10, 17}));
  }
}

TEST(Loader, KnowsWhatItHasGivenNotWhatItHasRead) {
  const Squares dataset{.count = 10};
  Loader loader(dataset, in_order(10, 2), collate, {.workers = 2});
  EXPECT_EQ(loader.state(), SamplerState{});
  for (int step = 0; step < 4; ++step) loader.next();
  EXPECT_EQ(loader.state(), (SamplerState{.seed = 0, .epoch = 0, .cursor = 8}));
}

TEST(Loader, KnowsTheEpochOfTheStepThatItGaveLast) {
  const Squares dataset{.count = 4};
  for (const int workers : {0, 2}) {
    Loader loader(dataset, in_order(4, 2), collate, {.workers = workers});
    std::vector<std::string> steps = {str(loader.epoch())};
    const auto note_next = [&] {
      loader.next();
      steps.push_back(str(loader.epoch(), loader.is_epoch_end() ? " end" : ""));
    };
    for (int step = 0; step < 4; ++step) note_next();
    loader.set_state({.seed = 0, .epoch = 7, .cursor = 2});
    steps.push_back(str(loader.epoch(), loader.is_epoch_end() ? " end" : ""));
    note_next();
    EXPECT_EQ(join(steps, ", "), "0, 0, 0 end, 1, 1 end, 7, 7 end") << workers << " workers";
  }
}

// Of three samples, none is read again for epoch 1 before `next` asks for it.
TEST(Loader, DoesNotReadBeyondAnEvaluation) {
  std::atomic<int> num_reads = 0;
  struct Three {
    std::atomic<int>& num_reads;
    std::int64_t size() const { return 3; }
    std::int64_t get(std::int64_t index) const {
      ++num_reads;
      return index;
    }
  };
  const Three dataset{num_reads};
  {
    Loader loader(dataset, evaluation_sampler(3, 2, {}), collate, {.workers = 2, .prefetch = 5});
    EXPECT_EQ(loader.next()[0].value, (Ids{0, 1}));
    EXPECT_EQ(loader.next()[0].value, (Ids{2}));
    EXPECT_TRUE(loader.is_epoch_end());
    EXPECT_EQ(num_reads, 3);
    EXPECT_EQ(loader.next()[0].value, (Ids{0, 1}));
  }
}

TEST(Loader, GoesOnFromAState) {
  const Squares dataset{.count = 10};
  for (const int workers : {0, 3}) {
    Loader loader(dataset, in_order(10, 2), collate, {.workers = workers});
    for (int step = 0; step < 4; ++step) loader.next();
    loader.set_state({.seed = 0, .epoch = 5, .cursor = 2});
    EXPECT_EQ(loader.state(), (SamplerState{.seed = 0, .epoch = 5, .cursor = 2}));
    EXPECT_EQ(loader.next()[0].samples.ids, (Ids{2, 3}));
    EXPECT_EQ(loader.state(), (SamplerState{.seed = 0, .epoch = 5, .cursor = 4}));
    EXPECT_EQ(error_of([&] { loader.set_state({.seed = 1}); }).kind(), ErrorKind::Config);
    EXPECT_EQ(loader.next()[0].samples.ids, (Ids{4, 5}));
  }
}

struct Seeds {
  std::int64_t size() const { return 8; }
  std::uint64_t get(std::int64_t, std::uint64_t seed) const { return seed; }
};

TEST(Loader, GivesARandomDatasetASeedOfSampleAndEpoch) {
  using Values = std::vector<std::uint64_t>;
  const Seeds dataset;
  const auto keep = [](Values&& seeds) { return std::move(seeds); };
  Loader loader(dataset, Sampler({.num_samples = 8, .batch_size = 8, .seed = 7, .shuffle = false}, {}), keep);
  const Values first = loader.next()[0].value;
  loader.next();
  const Values third = loader.next()[0].value;
  EXPECT_EQ(third[5], 17022184241320906437U);  // of seed 7, epoch 2, sample 5
  std::set<std::uint64_t> different(first.begin(), first.end());
  different.insert(third.begin(), third.end());
  EXPECT_EQ(different.size(), 16U);
}

struct Epochs {
  std::int64_t size() const { return 8; }
  SampleFacts get(std::int64_t, const SampleFacts& facts) const { return facts; }
};

TEST(Loader, GivesADatasetSeedAndEpoch) {
  const Epochs dataset;
  const auto keep = [](std::vector<SampleFacts>&& facts) { return std::move(facts); };
  Loader loader(dataset, Sampler({.num_samples = 8, .batch_size = 8, .seed = 7, .shuffle = false}, {}), keep);
  loader.next();
  loader.next();
  const SampleFacts facts = loader.next()[0].value[5];
  EXPECT_EQ(facts.seed, 17022184241320906437U);  // as above
  EXPECT_EQ(facts.epoch, 2);
}

// As multi-scale training would: what it draws is the same on any number of ranks, and after a resume.
TEST(Loader, GivesCollateSeedEpochStepAndSamples) {
  struct Drawn {
    std::uint64_t seed, step_seed;
    std::int64_t epoch, step;
    Ids ids;
    bool operator==(const Drawn&) const = default;
  };
  const auto draw = [](Ids&&, const BatchFacts& facts) {
    return Drawn{facts.seed, facts.step_seed, facts.epoch, facts.step, facts.samples.ids};
  };
  const Squares dataset{.count = 8};
  const SamplerOptions options{.num_samples = 8, .batch_size = 2, .batches_per_step = 2, .seed = 7, .shuffle = false};
  Loader loader(dataset, Sampler(options, {}), draw, {.workers = 2});
  std::vector<Drawn> all;
  for (int step = 0; step < 4; ++step) {
    for (const auto& [value, samples] : loader.next()) all.push_back(value);
  }
  Loader second(dataset, Sampler(options, {.rank = 1, .size = 2}), draw, {.workers = 0});
  second.set_state({.seed = 7, .epoch = 1, .cursor = 4});
  EXPECT_EQ(second.next()[0].value, all[7]);
  EXPECT_EQ(all[7].epoch, 1);
  EXPECT_EQ(all[7].step, 1);
  EXPECT_EQ(all[7].ids, (Ids{6, 7}));
  EXPECT_EQ(all[6].step_seed, all[7].step_seed);
  std::set<std::uint64_t> seeds, step_seeds;
  for (const Drawn& drawn : all) {
    seeds.insert(drawn.seed);
    step_seeds.insert(drawn.step_seed);
  }
  EXPECT_EQ(seeds.size(), 8U);
  EXPECT_EQ(step_seeds.size(), 4U);
}

TEST(Loader, NamesABadSampleWhenItsStepIsDue) {
  const WithBad dataset{.bad = {5}};
  for (const int workers : {0, 3}) {
    Loader loader(dataset, in_order(8, 2), collate, {.workers = workers});
    EXPECT_EQ(loader.next()[0].value, (Ids{100, 101}));
    EXPECT_EQ(loader.next()[0].value, (Ids{102, 103}));
    const Error error = error_of([&] { loader.next(); });
    EXPECT_EQ(missing_facts(error, ErrorKind::Data, {"sample 5: images/5.jpg: not a JPEG", "--skip-bad N"}), "");
    EXPECT_EQ(loader.state().cursor, 4);
    EXPECT_EQ(loader.next()[0].value, (Ids{106, 107}));
  }
}

TEST(Loader, SkipsBadSamplesAndFillsUpWithGoodOnesThatDoNotCount) {
  const WithBad dataset{.count = 6, .bad = {1, 5}};
  for (const int workers : {0, 3}) {
    Loader loader(dataset, padded(6, 4), collate, {.workers = workers, .skip_bad = 2});
    const auto first = loader.next();
    EXPECT_EQ(first[0].samples, (SampleBatch{{0, 2, 3, 0}, 3, 0, 0}));
    EXPECT_EQ(first[0].value, (Ids{100, 102, 103, 100}));
    EXPECT_EQ(loader.next()[0].samples, (SampleBatch{{4, 0, 4, 0}, 1, 0, 1}));  // of 4 and 5, padded with 0 and 1
    const std::vector<BadSample> skipped = {{1, "images/1.jpg", "not a JPEG"}, {5, "images/5.jpg", "not a JPEG"}};
    EXPECT_EQ(loader.skipped(), skipped);
    for (int epoch = 1; epoch < 4; ++epoch) {  // the same two again: no more are skipped
      loader.next();
      loader.next();
    }
    EXPECT_EQ(loader.skipped(), skipped);
  }
}

TEST(Loader, SkipsNoMoreSamplesThanItMay) {
  const WithBad dataset{.count = 6, .bad = {1, 3, 5}};
  Loader loader(dataset, in_order(6, 2), collate, {.workers = 1, .skip_bad = 2});
  loader.next();
  loader.next();
  EXPECT_EQ(
      missing_facts(error_of([&] { loader.next(); }), ErrorKind::Data, {"sample 5: images/5.jpg: not a JPEG", "2"}),
      "");
}

TEST(Loader, RepeatsNothingInABatchOfAnEvaluation) {
  const WithBad dataset{.count = 6, .bad = {1, 5}};
  Loader loader(dataset, evaluation_sampler(6, 4, World()), collate, {.workers = 1, .skip_bad = 3});
  EXPECT_EQ(loader.next()[0].samples, (SampleBatch{{0, 2, 3}, 3, 0, 0}));
  EXPECT_EQ(loader.next()[0].value, (Ids{104}));
}

TEST(Loader, CannotSkipAWholeBatch) {
  const WithBad dataset{.bad = {2, 3}};
  Loader loader(dataset, in_order(8, 2), collate, {.workers = 1, .skip_bad = 10});
  loader.next();
  EXPECT_EQ(missing_facts(error_of([&] { loader.next(); }), ErrorKind::Data,
                          {"sample 3: images/3.jpg: not a JPEG", "micro-batch"}),
            "");
}

TEST(Loader, QuotesWhateverADatasetThrows) {
  struct Odd {
    std::int64_t size() const { return 3; }
    std::int64_t get(std::int64_t index) const {
      if (index == 0) fail(ErrorKind::Data, "0.json: line 3 is torn", "look at it");
      throw index;
    }
  };
  const Odd dataset;
  Loader loader(dataset, in_order(3, 1), collate, {.workers = 2});
  EXPECT_EQ(missing_facts(error_of([&] { loader.next(); }), ErrorKind::Data, {"sample 0", "0.json: line 3 is torn"}),
            "");
  EXPECT_EQ(missing_facts(error_of([&] { loader.next(); }), ErrorKind::Data, {"sample 1", "unknown exception"}), "");
}

TEST(Loader, NamesTheSamplesOfABatchThatCollateCannotMake) {
  const WithBad dataset{.bad = {5}};
  for (const int workers : {0, 2}) {
    const auto pick = [](Ids&& samples) {
      if (samples[0] == 102) throw std::length_error("too long\nException raised from stack");
      if (samples[0] == 104) fail(ErrorKind::Config, "no such size", "use --size 3");
      if (samples[0] == 106) throw std::bad_alloc();
      return std::make_unique<std::int64_t>(samples[0]);
    };
    Loader loader(dataset, in_order(8, 2), pick, {.workers = workers, .skip_bad = 1});
    EXPECT_EQ(*loader.next()[0].value, 100);
    const Error long_one = error_of([&] { loader.next(); });
    EXPECT_EQ(missing_facts(long_one, ErrorKind::Data, {"samples 2 (images/2.jpg), 3 (images/3.jpg)", "too long"}), "");
    EXPECT_EQ(long_one.message().find("Exception raised"), std::string::npos);
    EXPECT_EQ(missing_facts(error_of([&] { loader.next(); }), ErrorKind::Config,
                            {"samples 4 (images/4.jpg)", "no such size", "--size 3"}),
              "");
    EXPECT_THROW(loader.next(), std::bad_alloc);
    EXPECT_EQ(*loader.next()[0].value, 100);
  }
}

TEST(Loader, LeavesACoreToTheRankItself) {
  EXPECT_EQ(default_workers(16, 4), 3);
  EXPECT_EQ(default_workers(8, 3), 1);
  EXPECT_EQ(default_workers(2, 2), 0);
  EXPECT_EQ(default_workers(2, 8), 0);
  EXPECT_EQ(count_workers({.workers = 7}), 7);
}

TEST(Loader, RefusesOptionsAndSizesThatDoNotFit) {
  const Squares dataset{.count = 10};
  EXPECT_EQ(
      missing_facts(error_of([] { validate(LoaderOptions{.workers = -2}); }), ErrorKind::Config, {"workers is -2"}),
      "");
  EXPECT_EQ(error_of([] { validate(LoaderOptions{.prefetch = -1}); }).kind(), ErrorKind::Config);
  EXPECT_EQ(missing_facts(error_of([&] { Loader(dataset, in_order(9, 1), collate); }), ErrorKind::Config,
                          {"10 samples", "9"}),
            "");
}

}  // namespace
}  // namespace tandem
