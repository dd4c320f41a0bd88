#include "train/self_launch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

const Names kTwoGpus = {"0", "1"};

TEST(NeedsLauncher, WhereMoreThanOneRankOrADeviceIsWanted) {
  EXPECT_TRUE(needs_launcher({.nproc = 2}, {}));
  EXPECT_TRUE(needs_launcher({}, kTwoGpus));
  EXPECT_TRUE(needs_launcher({.device = "cpu"}, {}));
  EXPECT_TRUE(needs_launcher({.detach = true}, {}));
  EXPECT_TRUE(needs_launcher({.nproc = 1, .device = "1"}, kTwoGpus));
}

TEST(NeedsLauncher, NotForOneRankOnWhatThereIs) {
  EXPECT_FALSE(needs_launcher({}, {}));
  EXPECT_FALSE(needs_launcher({}, {"0"}));
  EXPECT_FALSE(needs_launcher({.nproc = 1}, kTwoGpus));
}

TEST(NeedsLauncher, IsAnErrorWhereTheRanksHaveNoPlace) {
  EXPECT_TRUE(says(error_of([] { needs_launcher({.nproc = 3}, kTwoGpus); }).message(), {"3 ranks", "2 GPUs", "0, 1"}));
  EXPECT_TRUE(
      says(error_of([] { needs_launcher({.device = "2"}, kTwoGpus); }).message(), {"device 2", "2 GPUs", "0, 1"}));
}

TEST(FindLauncher, LooksBesideTheProgramThenAboveItThenOnPath) {
  const TempFolder folder;
  const fs::path program = folder.add("build/bin/examples/train", "", 0700);
  const fs::path on_path = folder.add("usr/tandem", "", 0700);
  const std::vector<fs::path> path = {folder.path(), on_path.parent_path()};
  EXPECT_EQ(find_launcher(program, path), on_path);
  folder.add("bin/tandem", "no program", 0600);
  EXPECT_EQ(find_launcher(program, path), on_path);
  const fs::path above = folder.add("build/bin/tandem", "", 0700);
  EXPECT_EQ(find_launcher(program, path), above);
  const fs::path beside = folder.add("build/bin/examples/tandem", "", 0700);
  EXPECT_EQ(find_launcher(program, path), beside);
  EXPECT_EQ(find_launcher(above, {}), above);
}

void give_to_stranger(const fs::path& path) { EXPECT_EQ(::chown(path.c_str(), 12345, 12345), 0); }

TEST(FindLauncher, LeavesThatOfAStrangerAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
  const TempFolder folder;
  const fs::path program = folder.add("shared/mine/train", "", 0700);
  const fs::path strange = folder.add("shared/bin/tandem", "", 0755);
  const fs::path on_path = folder.add("usr/tandem", "", 0700);
  give_to_stranger(strange);
  EXPECT_EQ(find_launcher(program, {on_path.parent_path()}), on_path);
  give_to_stranger(program);
  EXPECT_EQ(find_launcher(program, {}), strange);
}

TEST(FindLauncher, SaysWhereItLookedInVain) {
  const Error error = error_of([] { find_launcher("/nowhere/bin/train", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::Launch);
  EXPECT_TRUE(says(error.message(), {"/nowhere/bin/tandem", "/bin/tandem", "PATH"}));
  EXPECT_TRUE(says(error.hint(), {"PATH", "`tandem run -n 2 /nowhere/bin/train ...`"}));
}

// The error message for these options in a rank whose launcher assigned these devices; empty: no error.
std::string contradiction(const RankOptions& options, const Names& devices, const Names& visible = {},
                          const std::string& run_folder = {}) {
  const int count = static_cast<int>(devices.size());
  const WorkerEnv env{.world = {.size = 2 * count, .local_size = count},
                      .devices = devices,
                      .is_launched = true,
                      .run_folder = run_folder};
  return error_of([&] { check_launched(options, env, visible); }).message();
}

TEST(CheckLaunched, TakesOptionsThatSayWhatTheLauncherDid) {
  EXPECT_EQ(contradiction({.nproc = 2}, {"cpu", "cpu"}), "");
  EXPECT_EQ(contradiction({.device = "cpu"}, {"cpu", "cpu"}), "");
  EXPECT_EQ(contradiction({.device = "all"}, {"cuda:0", "cuda:1"}, {"2", "3"}), "");
  EXPECT_EQ(contradiction({.device = "0,1"}, {"cuda:0", "cuda:1"}, {"2", "3"}), "");
  EXPECT_EQ(contradiction({.device = "2, 3"}, {"cuda:0", "cuda:1"}, {"2", "3"}), "");
  EXPECT_EQ(contradiction({.device = "GPU-a"}, {"cuda:0"}, {"GPU-a"}), "");
  EXPECT_EQ(contradiction({.nproc = 4, .device = "6,7"}, {"cuda:0", "cuda:1"}, {"4", "5"}, "/runs/self"), "");
}

TEST(CheckLaunched, RefusesOthersAndSaysWhatCounts) {
  EXPECT_TRUE(says(contradiction({.nproc = 4}, {"cpu", "cpu"}), {"--nproc 4", "2 ranks"}));
  EXPECT_TRUE(
      says(contradiction({.device = "cpu"}, {"cuda:0", "cuda:1"}, kTwoGpus), {"--device cpu", "cuda:0, cuda:1"}));
  EXPECT_TRUE(says(contradiction({.device = "all"}, {"cpu"}), {"--device all", "cpu"}));
  EXPECT_TRUE(
      says(contradiction({.device = "1,0"}, {"cuda:0", "cuda:1"}, kTwoGpus), {"--device 1,0", "cuda:0, cuda:1"}));
  EXPECT_TRUE(says(contradiction({.device = "0"}, {"cuda:0", "cuda:0"}, {"0"}), {"--device 0", "cuda:0, cuda:0"}));
}

}  // namespace
}  // namespace tandem
