#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <tandem/training.h>

#include <csignal>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "train/small_training_test.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr BatchOptions kBatch{.batch_size = 3};

TrainingOptions saving_every(std::int64_t num_steps, std::int64_t last) {
  return {.epochs = 100, .max_steps = last, .seed = 5, .save_every = num_steps};
}

bool is_saved(const fs::path& checkpoint) { return fs::exists(checkpoint / "DONE"); }

// A save waits while another process holds the lock of the folder, as on a disk that hangs. If a step waited for the
// save, the test would hang.
TEST(Saving, StopsNoStepHoweverSlowTheDisk) {
  const SharedFolder folder;
  run_ranks(
      2,
      [&](const World& world) {
        fs::create_directories(folder / "run");
        Communicator comm = Communicator::join();
        SmallTraining training(comm, kBatch, saving_every(4, 8), folder / "run");
        {
          const Fd lock(::open((folder / "run").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
          ASSERT_EQ(::flock(lock.get(), world.is_main() ? LOCK_EX : LOCK_UN), 0);
          while (training->step() < 7) training.step();
          EXPECT_FALSE(is_saved(folder / "run/step-00000004"));
          comm.barrier();
        }
        training.step();
        EXPECT_FALSE(training->has_next());
        EXPECT_TRUE(is_saved(folder / "run/step-00000004")) << "seen by rank " << world.rank;
        EXPECT_TRUE(is_saved(folder / "run/step-00000008")) << "seen by rank " << world.rank;
      },
      60s);
}

// The snapshot has the weights of the step that was saved, not those of later steps.
TEST(Saving, LateWritesTheBytesOfItsStep) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  const auto run = [&](const fs::path& name, std::int64_t last, bool is_late) {
    fs::create_directories(name);
    SmallTraining training(comm, kBatch, saving_every(4, last), name);
    const Fd lock(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.get(), is_late ? LOCK_EX : LOCK_UN), 0);
    while (training->has_next()) {
      if (training->step() == 7) ::flock(lock.get(), LOCK_UN);
      training.step();
    }
  };
  run(folder / "late", 8, true);
  run(folder / "at_once", 4, false);
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    EXPECT_EQ(read_file(folder / "late/step-00000004" / name), read_file(folder / "at_once/step-00000004" / name));
  }
}

// Limits the size of files that this process writes.
void limit_file_size(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
}

class FailingSave : public testing::TestWithParam<std::int64_t> {};

// The save after step 4 fails. That is reported at the end if it is the last step, otherwise at the save after step 6.
TEST_P(FailingSave, EndsEveryRankWithTheReasonAndLeavesTheOlderCheckpoint) {
  const std::int64_t last = GetParam();
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    Communicator comm = Communicator::join();
    SmallTraining training(comm, kBatch, saving_every(2, last), folder / "run");
    while (training->step() < 3) training.step();
    training->wait_for_save();
    if (world.is_main()) limit_file_size(1000);
    const Error error = error_of([&] {
      while (training->has_next()) training.step();
    });
    EXPECT_TRUE(
        says(error.message(), {(folder / "run/.tmp-step-00000004/model.safetensors").native(), "File too large"}));
    EXPECT_TRUE(says(error.hint(), {"ulimit -f"}));
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    EXPECT_EQ(training->step(), std::min<std::int64_t>(last, 6));
    EXPECT_EQ(find_checkpoint(folder / "run", Which::Newest, Check::Checksums).path, folder / "run/step-00000002");
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(LastStep, FailingSave, testing::Values(4, 10));

TEST(Saving, OnDemandIsDoneOnceAStep) {
  const SharedFolder folder;
  Communicator comm = Communicator::join();
  SmallTraining training(comm, kBatch, saving_every(0, 10), folder / "run");
  EXPECT_EQ(training->last_saved(), "");
  training.step();
  training->save();
  training->wait_for_save();
  EXPECT_EQ(training->last_saved(), folder / "run/step-00000001");
  const auto first = fs::last_write_time(folder / "run/step-00000001/DONE");
  training->save();
  training->wait_for_save();
  EXPECT_EQ(fs::last_write_time(folder / "run/step-00000001/DONE"), first);

  SmallTraining next(comm, kBatch, saving_every(0, 10), folder / "run");
  EXPECT_EQ(next->step(), 1);
  EXPECT_EQ(next->last_saved(), folder / "run/step-00000001") << "which it resumed from";
}

TEST(Saving, NeedsToKnowTheData) {
  Communicator comm = Communicator::join();
  SmallNet net;
  Sgd optimizer(*net);
  LossScaler scaler(Precision::Fp32, torch::kCPU);
  Training training(TrainedPart{*net, optimizer, scaler}, comm, plan_batch({.batch_size = 1}, 1), {});
  EXPECT_TRUE(says(error_of([&] { training.save(); }).message(), {"save()", "begin()"}));
}

}  // namespace
}  // namespace tandem
