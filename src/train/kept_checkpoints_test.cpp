#include <gtest/gtest.h>
#include <tandem/training.h>

#include <set>

#include "base/error_test.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "multiproc/training_bits.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

struct Run {
  std::int64_t last = 0;  // step
  std::int64_t save_every = 2;
  std::string resume = "auto";
  Retention retention = {};
};

void train(const fs::path& folder, const Run& run) {
  Communicator comm = Communicator::join();
  const TrainingOptions options{.epochs = 100,
                                .max_steps = run.last,
                                .seed = 5,
                                .save_every = run.save_every,
                                .retention = run.retention,
                                .resume = run.resume};
  SmallTraining training(comm, kFourShards, options, folder);
  while (training->has_next()) training.step();
}

Names checkpoints_in(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) names.insert(entry.path().filename());
  }
  return names;
}

TEST(KeptCheckpoints, AreNotBegunOverIfNoneIsUsable) {
  const SharedFolder folder;
  train(folder / "run", {.last = 4});
  for (const char* name : {"step-00000002", "step-00000004"}) fs::resize_file(folder / "run" / name / "state.json", 3);
  for (const std::string& resume : {std::string("auto"), std::string("no"), std::string("latest")}) {
    const Error error = error_of([&] { train(folder / "run", {.last = 8, .resume = resume}); });
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint) << resume;
    EXPECT_TRUE(says(error.message(), {(folder / "run").native()})) << resume;
  }
  EXPECT_EQ(checkpoints_in(folder / "run"), (Names{"step-00000002", "step-00000004"}));
}

// The run loads that of step 2; that of step 4 is of an earlier attempt, and that of step 6 is written once more.
TEST(KeptCheckpoints, AreRemovedOnlyByTheRunThatWroteOrLoadedThem) {
  const SharedFolder folder;
  train(folder / "run", {.last = 6});
  train(folder / "run",
        {.last = 9, .save_every = 3, .resume = folder / "run/step-00000002", .retention = {.keep_last = 1}});
  EXPECT_EQ(checkpoints_in(folder / "run"), (Names{"step-00000004", "step-00000009"}));
  train(folder / "run", {.last = 10, .retention = {.keep_last = 1}});
  EXPECT_EQ(checkpoints_in(folder / "run"), (Names{"step-00000010"})) << "the run goes on from all that lie before";
}

class LostRunFolder : public testing::TestWithParam<const char*> {};

TEST_P(LostRunFolder, IsAnErrorOfEveryRankAtTheNextSave) {
  const SharedFolder folder;
  run_ranks(2, [&](const World& world) {
    Communicator comm = Communicator::join();
    const TrainingOptions options{.epochs = 100, .max_steps = 10, .seed = 5, .save_every = 2};
    SmallTraining training(comm, {.batch_size = 3}, options, folder / "run/checkpoints");
    while (training->step() < 3) training.step();
    training->wait_for_save();
    comm.barrier();
    const std::string what = GetParam();
    if (world.is_main() && what == "removed") fs::remove_all(folder / "run");
    if (world.is_main() && what == "renamed") fs::rename(folder / "run", folder / "renamed");
    const Error error = error_of([&] {
      while (training->has_next()) training.step();
    });
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    EXPECT_TRUE(says(error.message(), {(folder / "run/checkpoints").native()}));
    EXPECT_LE(training->step(), 6) << "the save after step 4 fails, which the next one tells";
    EXPECT_FALSE(fs::exists(folder / "run"));
    EXPECT_EQ(fs::exists(folder / "renamed/checkpoints/step-00000002/DONE"), what == "renamed");
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Folder, LostRunFolder, testing::Values("removed", "renamed"));

}  // namespace
}  // namespace tandem
