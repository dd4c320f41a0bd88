#include <gtest/gtest.h>
#include <tandem/training.h>
#include <torch/types.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error_test.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "multiproc/training_bits.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

void run_until(int num_ranks, std::int64_t last, const fs::path& folder, Precision precision = Precision::Fp32) {
  run_ranks(num_ranks, [&](const World&) {
    Communicator comm = Communicator::join();
    run_until(last, comm, folder, precision);
  });
}

TEST(Training, EndsInTheSameBytesWhereverItWasStoppedAndOnWhateverRanksItGoesOn) {
  const SharedFolder folder;
  run_until(1, 10, folder / "whole");
  run_until(2, 3, folder / "parts");
  run_until(4, 7, folder / "parts");
  run_until(1, 10, folder / "parts");
  expect_same_files(folder / "whole/step-00000010", folder / "parts/step-00000010");
}

// The state of the loss scaler is restored too.
TEST(Training, DoesSoWithALossScaler) {
  const SharedFolder folder;
  run_until(2, 10, folder / "whole", Precision::Fp16);
  run_until(1, 3, folder / "parts", Precision::Fp16);
  run_until(2, 10, folder / "parts", Precision::Fp16);
  expect_same_files(folder / "whole/step-00000010", folder / "parts/step-00000010");
  EXPECT_EQ(read_file(folder / "whole/step-00000010/state.json"), read_file(folder / "parts/step-00000010/state.json"));
}

class TrainingSignal : public testing::TestWithParam<std::pair<int, std::string>> {};

TEST_P(TrainingSignal, ToOneRankMakesAllSaveTheSameStep) {
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    const auto [signal, name] = GetParam();
    Communicator comm = Communicator::join();
    SmallTraining training(comm, kFourShards, ten_steps(), folder / "checkpoints");
    while (training->has_next()) {
      if (world.rank == 1 && training->step() == 3) std::raise(signal);
      if (world.rank == 1 && training->step() == 3 && signal == SIGTERM) std::raise(signal);
      training.step();
    }
    EXPECT_EQ(training->why_stopped(), name);
    EXPECT_EQ(training->step(), 4);
    comm.barrier();
    EXPECT_TRUE(fs::exists(folder / "checkpoints/step-00000004/DONE"));
  });
}

INSTANTIATE_TEST_SUITE_P(Signals, TrainingSignal,
                         testing::Values(std::pair(SIGTERM, "SIGTERM"), std::pair(SIGINT, "SIGINT"),
                                         std::pair(SIGHUP, "SIGHUP")));

TEST(Training, EndsAtASecondInterrupt) {
  const auto ends = run_ranks_to_end(
      1,
      [](const World&) {
        Communicator comm = Communicator::join();
        SmallTraining training(comm, {.batch_size = 3}, ten_steps(), {});
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      60s);
  EXPECT_EQ(ends.at(0).status.signal, SIGINT);
}

TEST(Training, StopsWhenItsTimeIsOver) {
  const SharedFolder folder;
  TrainingOptions options = ten_steps();
  options.stop_at = 0ms;
  Communicator comm = Communicator::join();
  SmallTraining training(comm, {.batch_size = 3}, options, folder / "checkpoints");
  training.step();
  EXPECT_FALSE(training->has_next());
  EXPECT_EQ(training->why_stopped(), "--stop-at");
  EXPECT_TRUE(fs::exists(folder / "checkpoints/step-00000001/DONE"));
}

TEST(Training, CountsItsTimeFromTheStartOfTheLauncher) {
  run_ranks(1, [](const World&) {
    const auto step_with = [](std::chrono::milliseconds stop_at) {
      Communicator comm = Communicator::join();
      TrainingOptions options = ten_steps();
      options.stop_at = stop_at;
      SmallTraining training(comm, {.batch_size = 3}, options, {});
      training.step();
      return training->why_stopped();
    };
    const auto uptime = since_boot();
    EXPECT_EQ(step_with(uptime), "") << "this process is younger than the machine";
    set_environment_variable("TANDEM_STARTED_AT", "1");
    EXPECT_EQ(step_with(uptime / 2), "--stop-at");
    EXPECT_EQ(step_with(uptime * 2), "");
  });
}

TEST(Training, KeepsWhatItWasToldTo) {
  const SharedFolder folder;
  TrainingOptions options = ten_steps();
  options.save_every = 2;
  options.retention.keep_last = 2;
  Communicator comm = Communicator::join();
  SmallTraining training(comm, {.batch_size = 3}, options, folder / "checkpoints");
  while (training->has_next()) training.step();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000008", "step-00000010"}));
}

// A run of one rank in this process, up to step `last`.
std::vector<std::string> notes_of(const BatchOptions& batch, const std::string& resume, std::int64_t last,
                                  const fs::path& folder) {
  Communicator comm = Communicator::join();
  TrainingOptions options = ten_steps();
  options.resume = resume;
  options.max_steps = last;
  options.save_every = 2;
  SmallTraining training(comm, batch, options, folder);
  while (training->has_next()) training.step();
  return training->notes();
}

using Notes = std::vector<std::string>;

TEST(Training, BeginsAnewOrGoesOnAsItWasTold) {
  const SharedFolder folder;
  const fs::path first = folder / "first", second = folder / "second";
  EXPECT_EQ(notes_of(kFourShards, "auto", 2, first), Notes());
  EXPECT_EQ(notes_of(kFourShards, "auto", 4, first),
            Notes{str("resumed from ", first / "step-00000002", ", at step 2")});
  EXPECT_EQ(notes_of(kFourShards, "latest", 6, first),
            Notes{str("resumed from ", first / "step-00000004", ", at step 4")});
  EXPECT_EQ(notes_of(kFourShards, first / "step-00000002", 4, second),
            Notes{str("resumed from ", first / "step-00000002", ", at step 2")});
  expect_same_files(first / "step-00000004", second / "step-00000004");
  EXPECT_EQ(notes_of(kFourShards, str("weights:", first), 2, folder / "third"),
            Notes{str("weights from ", first / "step-00000006")});
  EXPECT_EQ(notes_of(kFourShards, "no", 2, folder / "fourth"), Notes());
}

TEST(Training, WantsACheckpointWhereItWasToldThatThereIsOne) {
  const SharedFolder folder;
  for (const std::string& resume :
       {std::string("latest"), str("weights:", folder / "none"), std::string(folder / "none")}) {
    const Error error = error_of([&] { notes_of(kFourShards, resume, 2, folder / "none"); });
    EXPECT_TRUE(says(error.message(), {str("'", folder / "none", "'")}));
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  }
}

TEST(Training, PassesOverATornCheckpointAndEndsInTheSameBytes) {
  const SharedFolder folder;
  notes_of(kFourShards, "no", 8, folder / "whole");
  notes_of(kFourShards, "no", 6, folder / "torn");
  fs::resize_file(folder / "torn/step-00000006/optimizer.safetensors", 100);
  const Notes notes = notes_of(kFourShards, "auto", 8, folder / "torn");
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(says(notes[0], {str(folder / "torn/step-00000006", ": ")}));
  EXPECT_EQ(notes[1], str("resumed from ", folder / "torn/step-00000004", ", at step 4"));
  expect_same_files(folder / "whole/step-00000008", folder / "torn/step-00000008");
}

TEST(Training, RefusesInExactModeWhatWouldLeadToOtherBits) {
  const SharedFolder folder;
  notes_of(kFourShards, "auto", 2, folder / "run");
  const Error error = error_of([&] { notes_of({.batch_size = 3, .shards = 2}, "auto", 4, folder / "run"); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"shards 4", "2"}));
  EXPECT_TRUE(says(error.hint(), {"--shards"}));
  const Notes notes = notes_of({.batch_size = 3, .accumulate = 4}, "auto", 4, folder / "run");
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(says(notes[0], {"exact true", "false"}));
}

TEST(Training, ResumesFromTheFolderOfARunToo) {
  const SharedFolder folder;
  notes_of(kFourShards, "auto", 2, folder / "run/checkpoints");
  EXPECT_EQ(notes_of(kFourShards, folder / "run", 4, folder / "other").back(),
            str("resumed from ", folder / "run/checkpoints/step-00000002", ", at step 2"));
}

// After the last step, such as in an evaluation, signals have their default effect.
TEST(Training, TakesSignalsOnlyWhileThereAreSteps) {
  const auto handler = [] {
    struct sigaction action {};
    ::sigaction(SIGTERM, nullptr, &action);
    return action.sa_handler;
  };
  const auto before = handler();
  Communicator comm = Communicator::join();
  TrainingOptions options = ten_steps();
  options.max_steps = 1;
  SmallTraining training(comm, kFourShards, options, {});
  EXPECT_NE(handler(), before);
  training.step();
  EXPECT_EQ(handler(), before);
}

TEST(Training, SaysThatTheRateStaysWhenOnlyTheRanksChange) {
  const SharedFolder folder;
  run_ranks(2, [&](const World&) { notes_of({.batch_size = 3, .accumulate = 2}, "auto", 2, folder / "run"); });
  fs::copy(folder / "run", folder / "copy", fs::copy_options::recursive);
  EXPECT_TRUE(says(notes_of({.batch_size = 3, .accumulate = 4}, "auto", 4, folder / "run").front(),
                   {"2 ranks", "this run has 1", "global batch stays 12", "learning rate"}));
  const Notes notes = notes_of({.batch_size = 3, .accumulate = 2}, "auto", 4, folder / "copy");
  const auto says_both = [](const std::string& note) {
    return static_cast<bool>(
        says(note, {"2 ranks", "this run has 1", "global batch was 12", "6", "learning rate", "--scale-lr"}));
  };
  EXPECT_EQ(std::ranges::count_if(notes, says_both), 1);
}

TEST(Training, WithoutExactModeGoesOnWithTheSameBitsOnAsManyRanks) {
  const SharedFolder folder;
  const auto run = [&](const fs::path& name, std::int64_t last) {
    run_ranks(2, [&](const World&) { notes_of({.batch_size = 3, .accumulate = 2}, "auto", last, name); });
  };
  run(folder / "whole", 6);
  run(folder / "parts", 4);
  run(folder / "parts", 6);
  expect_same_files(folder / "whole/step-00000006", folder / "parts/step-00000006");
}

TEST(Training, RefusesASynchronisedBatchNormInExactMode) {
  Communicator comm = Communicator::join();
  SmallNet net;
  net->norm->set_gather([](const torch::Tensor& row) { return row.unsqueeze(0); });
  Sgd optimizer(*net);
  LossScaler scaler(Precision::Fp32, torch::kCPU);
  const BatchPlan plan = plan_batch(kFourShards, 1);
  EXPECT_EQ(error_of([&] {
              Training(TrainedPart{*net, optimizer, scaler}, comm, plan, {});
            }).kind(),
            ErrorKind::Config);
}

// The guide counts micro-batches: its 500 iterations are 31 updates, and its learning rate follows them.
TEST(D4, AStepIsOneUpdateHoweverManyMicroBatchesItHas) {
  Communicator comm = Communicator::join();
  SmallModel model(SmallNet(), comm);
  Sgd optimizer(*model.module());
  LossScaler scaler(Precision::Fp32, torch::kCPU);
  const BatchPlan plan = plan_batch({.batch_size = 1, .accumulate = 16}, 1);
  Sampler sampler({.num_samples = 48, .batch_size = 1, .batches_per_step = plan.batches_per_step()}, {});
  Training training(TrainedPart{*model.module(), optimizer, scaler}, comm, plan, {.epochs = 1});
  training.begin(sampler);
  EXPECT_EQ(training.num_steps(), 3);
  int num_updates = 0;
  while (training.has_next()) {
    EXPECT_EQ(training.step(), num_updates);
    const auto loss = [&](const SampleBatch& batch) {
      return LossSum{model.forward(torch::ones({2, 4}), batch.ids[0] >= 0).sum(), 2};
    };
    train_step(model, optimizer, scaler, sampler.next(), loss, training.step_options(0.1));
    training.end_step();
    ++num_updates;
  }
  EXPECT_EQ(num_updates, 3);
  EXPECT_EQ(model.stats().passes, 3) << "micro-batches but the last stay on their rank";
}

TEST(Training, DoesNotBeginAnewWhereCheckpointsOfAnotherRunLie) {
  const SharedFolder folder;
  notes_of(kFourShards, "auto", 2, folder / "run");
  const auto expect_refused = [&](const std::string& resume) {
    const Error error = error_of([&] { notes_of(kFourShards, resume, 6, folder / "run"); });
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    EXPECT_TRUE(says(error.message(), {(folder / "run/step-00000002").native()}));
    EXPECT_TRUE(says(error.hint(), {"--resume auto"}));
  };
  for (const std::string& resume : {std::string("no"), str("weights:", folder / "run")}) {
    expect_refused(resume);
  }
  notes_of(kFourShards, "auto", 4, folder / "other");
  expect_refused(folder / "other");
  EXPECT_EQ(notes_of(kFourShards, folder / "run/step-00000002/", 4, folder / "run").size(), 1U) << "it is its own";
}

TEST(Training, SaysWhatIsWrongWithTheCheckpointItWasGiven) {
  const SharedFolder folder;
  notes_of(kFourShards, "auto", 2, folder / "run");
  const fs::path checkpoint = folder / "run/step-00000002";
  fs::resize_file(checkpoint / "state.json", 3);
  const std::string message = error_of([&] { notes_of(kFourShards, checkpoint, 4, folder / "next"); }).message();
  EXPECT_NE(message.find("state.json has 3 bytes, expected "), std::string::npos) << message;
}

TEST(Training, GoesOnAfterARestartWhateverItWasToldAtFirst) {
  const SharedFolder folder;
  notes_of(kFourShards, "no", 2, folder / "run");
  set_environment_variable("TORCHELASTIC_RESTART_COUNT", "1");
  EXPECT_EQ(notes_of(kFourShards, "no", 4, folder / "run"),
            Notes{str("resumed from ", folder / "run/step-00000002", ", at step 2")});
  set_environment_variable("TORCHELASTIC_RESTART_COUNT", "0");
}

TEST(Training, TriesItsFolderBeforeItBegins) {
  const Error error = error_of([&] { notes_of(kFourShards, "auto", 2, "/proc/none"); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"/proc/none", "No such file or directory"}));
}

// 48 samples: 4 steps of 12 per epoch on one rank, 2 of 24 on two.
TEST(Training, UsesEachSampleAsOftenAsToldThoughTheGlobalBatchChanges) {
  const SharedFolder folder;
  const auto run = [&](int num_ranks, std::int64_t last, std::int64_t num_steps) {
    run_ranks(num_ranks, [&](const World& world) {
      Communicator comm = Communicator::join();
      SmallModel model(SmallNet(), comm);
      Sgd optimizer(*model.module());
      LossScaler scaler(Precision::Fp32, torch::kCPU);
      const BatchPlan plan = plan_batch({.batch_size = 12}, world.size);
      Sampler sampler({.num_samples = 48, .batch_size = 12, .batches_per_step = plan.batches_per_step()},
                      shard_of(world));
      Training training(TrainedPart{*model.module(), optimizer, scaler}, comm, plan, {.epochs = 2}, folder / "run");
      training.begin(sampler);
      EXPECT_EQ(training.num_steps(), num_steps);
      while (training.has_next()) {
        if (training.step() + 1 == last) training.ask_to_stop("enough");
        const auto loss = [&](const SampleBatch& batch) { return small_loss(model, batch); };
        train_step(model, optimizer, scaler, sampler.next(), loss, training.step_options(0.1));
        training.end_step();
      }
    });
  };
  run(1, 4, 8);   // one epoch
  run(2, 99, 6);  // two steps are left, twice as large
}

TEST(Training, KeepsTheBestByItsMetric) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  TrainingOptions options = ten_steps();
  options.save_every = 1;
  options.max_steps = 3;
  options.retention.keep_last = 1;
  SmallTraining training(comm, kFourShards, options, folder / "run");
  for (const double metric : {3.0, 1.0, 2.0}) training.step(metric);
  EXPECT_TRUE(fs::exists(folder / "run/step-00000002/DONE"));
  EXPECT_FALSE(fs::exists(folder / "run/step-00000001"));
  EXPECT_EQ(read_file(folder / "run/best"), "step-00000002\n");
}

TEST(Training, BeginsTheAverageAnewWithNewWeights) {
  const SharedFolder folder;
  notes_of(kFourShards, "no", 6, folder / "first");
  notes_of(kFourShards, str("weights:", folder / "first"), 1, folder / "second");
  Communicator comm = Communicator::join();
  TrainingOptions options = ten_steps();
  options.resume = str("weights:", folder / "first");
  SmallTraining training(comm, kFourShards, options, {});
  for (const auto& [name, tensor] : training.ema().state()) {
    if (name != "average.in.weight") continue;
    EXPECT_TRUE(tensor.equal(training.net()->in->weight));
  }
}

TEST(Training, SaysWhatIsMissingOrCannotBe) {
  Communicator comm = Communicator::join();
  SmallNet net;
  Sgd optimizer(*net);
  LossScaler scaler(Precision::Fp32, torch::kCPU);
  const BatchPlan plan = plan_batch({.batch_size = 1}, 1);
  const Training training(TrainedPart{*net, optimizer, scaler}, comm, plan, {});
  EXPECT_TRUE(says(error_of([&] { training.has_next(); }).message(), {"has_next()", "begin()"}));
  EXPECT_TRUE(says(error_of([] { validate(TrainingOptions{.epochs = -1}); }).message(), {"epochs", "-1"}));
  EXPECT_TRUE(says(error_of([] { validate(TrainingOptions{.max_steps = 0}); }).message(), {"max-steps is 0"}));
  EXPECT_TRUE(says(error_of([] { validate(TrainingOptions{.threads = 0}); }).message(), {"threads", "0"}));
  EXPECT_TRUE(says(error_of([] { validate(TrainingOptions{.threads = 1025}); }).hint(), {"1024"}));
  EXPECT_TRUE(says(error_of([] { validate(TrainingOptions{.epochs = 1'000'000'001}); }).hint(), {"1000000000"}));
}

}  // namespace
}  // namespace tandem
