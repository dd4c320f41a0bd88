#include <gtest/gtest.h>
#include <tandem/accelerator.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "train/accelerator_options_test.h"
#include "train/line_model_test.h"
#include "train/small_net_test.h"

namespace tandem {
namespace {

using torch::Tensor;

struct FrugalImpl : LineImpl {
  void set_recompute(bool wanted) { recompute = wanted; }
  bool recompute = false;
};
TORCH_MODULE(Frugal);

// A typical user loop; `at_end` is called after each step.
template <class AtEnd>
void run_small(Accelerator& accelerator, SmallNet& net, AtEnd&& at_end) {
  auto model = accelerator.prepare(net);
  AdamW optimizer(*net);
  accelerator.prepare(optimizer);
  Sampler sampler = accelerator.sampler(37);
  for (const SampleBatch& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward(small_loss(model, batch));
    accelerator.clip_grad_norm(1);
    if (accelerator.step(0.01)) at_end();
  }
}

std::vector<Tensor> trained_by_accelerator(Communicator& comm, const AcceleratorOptions& options,
                                           const std::filesystem::path& folder = {}) {
  Accelerator accelerator(comm.duplicate(), options, {.folder = folder});
  SmallNet net;
  run_small(accelerator, net, [] {});
  return net->parameters();
}

std::vector<Tensor> trained_by_train_step(Communicator& comm, const AcceleratorOptions& options) {
  torch::manual_seed(options.training.seed);
  SmallNet net;
  SmallModel model(net, comm);
  AdamW optimizer(*net);
  LossScaler scaler(options.precision, comm.device());
  const BatchPlan plan = plan_batch(options.batch, comm.world().size);
  Sampler sampler(
      {.num_samples = 37, .batch_size = plan.batch_size, .batches_per_step = plan.batches_per_step(), .seed = 5},
      shard_of(comm.world()));
  Training training(TrainedPart{*net, optimizer, scaler}, comm, plan, options.training);
  training.begin(sampler);
  while (training.has_next()) {
    const auto loss = [&](const SampleBatch& batch) { return small_loss(model, batch); };
    train_step(model, optimizer, scaler, sampler.next(), loss, training.step_options(0.01, 1));
    training.end_step();
  }
  return net->parameters();
}

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << "parameter " << i;
}

TEST(Accelerator, GivesTheBitsOfTrainStep) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    for (const BatchOptions& batch : {BatchOptions{.batch_size = 3, .accumulate = 2}, {.batch_size = 2, .shards = 4}}) {
      for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16}) {
        AcceleratorOptions options = options_of(batch);
        options.precision = precision;
        expect_equal(trained_by_accelerator(comm, options), trained_by_train_step(comm, options));
      }
    }
  });
}

TEST(Accelerator, GoesOnFromItsCheckpointToTheSameBits) {
  const TempFolder temp;
  Communicator comm = Communicator::join();
  const AcceleratorOptions whole = options_of({.batch_size = 3, .accumulate = 2});
  AcceleratorOptions part = whole;
  part.training.max_steps = 4;
  trained_by_accelerator(comm, part, temp.path());
  expect_equal(trained_by_accelerator(comm, whole, temp.path()), trained_by_accelerator(comm, whole));
}

TEST(Accelerator, SavesAndLoadsWhenAsked) {
  const TempFolder temp, other;
  Communicator comm = Communicator::join();
  AcceleratorOptions options = options_of({.batch_size = 8});
  options.training.retention.keep_last = 9;
  {
    Accelerator accelerator(options, {.folder = temp.path()});
    SmallNet net;
    run_small(accelerator, net, [&] {
      if (accelerator.completed_steps() == 2) accelerator.save_state();
    });
  }
  Accelerator accelerator(options, {.folder = other.path()});
  accelerator.load_state(std::filesystem::path(temp.path()) / "checkpoints" / "step-00000002");
  SmallNet net;
  std::int64_t num_steps = 0;
  run_small(accelerator, net, [&] { ++num_steps; });
  EXPECT_EQ(num_steps, 4);
  expect_equal(net->parameters(), trained_by_accelerator(comm, options));
}

TEST(Accelerator, SavesWhenOneRankAsksForIt) {
  const SharedFolder shared;
  run_ranks(2, [&](const World& world) {
    AcceleratorOptions options = options_of({.batch_size = 8});
    options.training.retention.keep_last = 9;
    Accelerator accelerator(options, {.folder = shared / "run"});
    SmallNet net;
    run_small(accelerator, net, [&] {
      if (world.is_main() && accelerator.completed_steps() == 2) accelerator.save_state();
    });
    accelerator.wait_for_everyone();
    EXPECT_TRUE(std::filesystem::exists(shared / "run/checkpoints/step-00000002/DONE"));
    EXPECT_FALSE(std::filesystem::exists(shared / "run/checkpoints/step-00000003"));
  });
}

TEST(Accelerator, RecordsARunOnceItCanBegin) {
  const TempFolder temp;
  AcceleratorOptions options = options_of({.batch_size = 8}, 1);
  int num_records = 0;
  const RunPlace place{.folder = temp.path(), .record_start = [&] { ++num_records; }};
  options.training.resume = "latest";  // there is no checkpoint
  const auto run = [&] {
    Accelerator accelerator(options, place);
    SmallNet net;
    run_small(accelerator, net, [&] { EXPECT_EQ(num_records, 1); });
    accelerator.close();
  };
  EXPECT_NE(error_of(run).message(), "");
  EXPECT_EQ(num_records, 0);
  options.training.resume = "no";
  run();
  EXPECT_EQ(num_records, 1);
  Accelerator(options, place).close();  // a program without training
  EXPECT_EQ(num_records, 2);
}

// Two micro-batches a rank: {1, 2} and {3, 4} on rank 0, {5, 6} and {7, 8} on rank 1. The gradient of the mean of
// 2 * x is 2 * 4.5 = 9; the mean of the means of the micro-batches is 9 too. With a loss that counts only x > 6, it is
// 2 * 7.5 = 15 with sums and counts, and the mean of 0, 0, 0 and 15 with means.
TEST(Accelerator, MeansWhatTheLossCounts) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    for (const bool by_sums : {true, false}) {
      Accelerator accelerator(comm.duplicate(), options_of({.batch_size = 2, .accumulate = 2}, 1));
      Line line;
      auto model = accelerator.prepare(line);
      Sgd optimizer(*line);
      accelerator.prepare(optimizer);
      Sampler sampler({.num_samples = 8, .batch_size = 2, .batches_per_step = 4, .seed = 5, .shuffle = false},
                      shard_of(accelerator.world()));
      int num_synced = 0;
      for (const SampleBatch& batch : accelerator.batches(sampler)) {
        const auto pass = accelerator.accumulate();
        const Tensor x = torch::tensor(batch.ids, torch::kFloat) + 1;
        const Tensor is_counted = (x > 6).to(torch::kFloat);
        const Tensor sum = (model(2 * x) * is_counted).sum();
        const auto count = is_counted.sum().item<std::int64_t>();
        num_synced += accelerator.sync_gradients() ? 1 : 0;
        if (by_sums) {
          accelerator.backward({sum, count});
        } else {
          accelerator.backward(sum / std::max<std::int64_t>(count, 1));
        }
        accelerator.step(1);
      }
      EXPECT_EQ(num_synced, 1);
      EXPECT_EQ(line->weight.item<double>(), by_sums ? -15 : -3.75);
    }
  });
}

TEST(Accelerator, GathersEachSampleOnceForMetrics) {
  run_ranks(2, [](const World&) {
    Accelerator accelerator(options_of({.batch_size = 4}));
    Sampler sampler({.num_samples = 37, .batch_size = 4, .batches_per_step = 2, .tail = Tail::Pad},
                    shard_of(accelerator.world()));
    std::vector<std::int64_t> seen;
    for (std::int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
      for (const SampleBatch& batch : sampler.next()) {
        const Tensor ids = accelerator.gather_for_metrics(torch::tensor(batch.ids, torch::kLong), batch);
        for (std::int64_t i = 0; i < ids.numel(); ++i) seen.push_back(ids[i].item<std::int64_t>());
      }
    }
    std::ranges::sort(seen);
    std::vector<std::int64_t> all(37);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  });
}

TEST(Accelerator, TalksToTheOtherRanks) {
  run_ranks(3, [](const World& world) {
    Accelerator accelerator(options_of({.batch_size = 4}));
    EXPECT_EQ(accelerator.process_index(), world.rank);
    EXPECT_EQ(accelerator.num_processes(), 3);
    EXPECT_TRUE(torch::equal(accelerator.gather(torch::full({}, world.rank * 10)), torch::tensor({0, 10, 20})));
    EXPECT_EQ(accelerator.reduce(torch::full({}, world.rank + 0.5)).item<double>(), 4.5);
    EXPECT_EQ(accelerator.reduce(torch::full({}, world.rank + 0.5), Reduction::Mean).item<double>(), 1.5);

    EXPECT_FALSE(accelerator.check_trigger());
    if (world.rank == 2) accelerator.set_trigger();
    EXPECT_TRUE(accelerator.check_trigger());
    EXPECT_FALSE(accelerator.check_trigger());
  });
}

TEST(Accelerator, LetsTheFirstRankGoFirst) {
  const SharedFolder shared;
  const std::filesystem::path made = shared / "made";
  run_ranks(3, [&](const World& world) {
    Accelerator accelerator(options_of({.batch_size = 4}));
    accelerator.main_process_first([&] {
      EXPECT_EQ(std::filesystem::exists(made), !world.is_main());
      std::filesystem::create_directory(made);
    });
  });
}

TEST(Accelerator, EndsEveryRankWhenOneAsksForIt) {
  run_ranks(2, [](const World& world) {
    Accelerator accelerator(options_of({.batch_size = 4}));
    SmallNet net;
    std::int64_t num_steps = 0;
    run_small(accelerator, net, [&] {
      if (++num_steps == 3 && world.rank == 1) accelerator.stop("patience");
    });
    EXPECT_EQ(num_steps, 3);
  });
}

// Leaves the loop with a break in step 3 of 6; model and optimizer are destroyed on return.
void break_off(Accelerator& accelerator, bool must_end) {
  SmallNet net;
  auto model = accelerator.prepare(net);
  AdamW optimizer(*net);
  accelerator.prepare(optimizer);
  Sampler sampler = accelerator.sampler(37);
  for (const SampleBatch& batch : accelerator.batches(sampler)) {
    const auto pass = accelerator.accumulate();
    accelerator.backward(small_loss(model, batch));
    if (accelerator.step(0.01) && accelerator.completed_steps() == 3) break;
  }
  if (must_end) accelerator.end_training();
}

TEST(Accelerator, SavesWhenTheLoopIsBrokenOffOrSaysThatItDidNot) {
  const TempFolder temp;
  Accelerator accelerator(options_of({.batch_size = 8}), {.folder = temp.path()});
  break_off(accelerator, /*must_end=*/true);
  accelerator.close();
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(temp.path()) / "checkpoints" / "step-00000003"));

  Accelerator forgetful(options_of({.batch_size = 8}));
  break_off(forgetful, /*must_end=*/false);
  const Error error = error_of([&] { forgetful.close(); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"step 3 of 6"}));
  EXPECT_TRUE(says(error.hint(), {"end_training()", "stop("}));
}

// The samples of a step without an update are used again after a resume.
TEST(Accelerator, GoesOnWithTheSamplesOfAStepThatWasNotDone) {
  const TempFolder temp;
  const AcceleratorOptions options = options_of({.batch_size = 8});
  Communicator comm = Communicator::join();
  {
    Accelerator accelerator(comm.duplicate(), options, {.folder = temp.path()});
    SmallNet net;
    auto model = accelerator.prepare(net);
    AdamW optimizer(*net);
    accelerator.prepare(optimizer);
    Sampler sampler = accelerator.sampler(37);
    for (const SampleBatch& batch : accelerator.batches(sampler)) {
      if (accelerator.completed_steps() == 3) break;
      const auto pass = accelerator.accumulate();
      accelerator.backward(small_loss(model, batch));
      accelerator.clip_grad_norm(1);
      accelerator.step(0.01);
    }
    accelerator.end_training();
  }
  expect_equal(trained_by_accelerator(comm, options, temp.path()), trained_by_accelerator(comm, options));
}

// With padding a micro-batch may count no sample, and then its mean is NaN.
TEST(Accelerator, PassesOverALossThatCountsNothing) {
  Accelerator accelerator(options_of({.batch_size = 2, .accumulate = 2}, 1));
  Line line;
  auto model = accelerator.prepare(line);
  Sgd optimizer(*line);
  accelerator.prepare(optimizer);
  Sampler sampler = accelerator.sampler(8);
  std::int64_t count = 0;
  for (const SampleBatch& batch : accelerator.batches(sampler)) {
    static_cast<void>(batch);
    const auto pass = accelerator.accumulate();
    const Tensor x = torch::full({count}, 3.0F);
    accelerator.backward({model(x).mean() * count, count});
    accelerator.step(1);
    count = 2;
  }
  EXPECT_EQ(line->weight.item<double>(), -3);
}

TEST(Accelerator, OfNoStepsTouchesNothingAfterwards) {
  const TempFolder temp;
  for (int run = 0; run < 2; ++run) {  // the second one has nothing left to do
    Accelerator accelerator(options_of({.batch_size = 8}, 2), {.folder = temp.path()});
    break_off(accelerator, /*must_end=*/false);
    EXPECT_EQ(error_of([&] { accelerator.close(); }).message(), "");
  }
}

TEST(Accelerator, TurnsRecomputeOnWhereTheModelOffersIt) {
  AcceleratorOptions options = options_of({});
  options.recompute = true;
  Accelerator accelerator(options);
  EXPECT_TRUE(says(error_of([&] { auto model = accelerator.prepare(SmallNet()); }).message(), {"--recompute"}));
  Frugal frugal;
  auto model = accelerator.prepare(frugal);
  EXPECT_TRUE(frugal->recompute);
}

// The weight is 0 and becomes -1 after a step of rate 1 with gradient 1; the average of decay 0.5 is then -0.5.
TEST(Accelerator, EvaluatesWithAveragedWeightsInEvalModeWithoutGradients) {
  Accelerator accelerator(options_of({.batch_size = 4}, 1));
  Line line;
  auto model = accelerator.prepare(line);
  Sgd optimizer(*line);
  accelerator.prepare(optimizer);
  Ema average(*line, {.decay = 0.5});
  accelerator.prepare(average);
  Sampler sampler = accelerator.sampler(37);
  Sampler held_out = evaluation_sampler(5, 2, accelerator.world());
  for (const SampleBatch& batch : accelerator.batches(sampler)) {
    static_cast<void>(batch);
    const auto pass = accelerator.accumulate();
    accelerator.backward(model(torch::ones({1})).sum());
    accelerator.step(1);
    for ([[maybe_unused]] const SampleBatch& one : accelerator.evaluate(held_out)) EXPECT_EQ(line->value(), -0.5);
  }
  std::vector<std::int64_t> ids;
  for (const SampleBatch& batch : accelerator.evaluate(held_out)) {
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    EXPECT_EQ(line->value(), -0.5);
    EXPECT_FALSE(line->is_training());
    EXPECT_FALSE(model(torch::ones({1})).requires_grad());
  }
  EXPECT_EQ(ids, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(line->value(), -1);
  EXPECT_TRUE(line->is_training());
}

}  // namespace
}  // namespace tandem
