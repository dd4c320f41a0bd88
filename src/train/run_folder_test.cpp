#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <tandem/config.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

constexpr WallTime kMoment = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 5h + 23min + 43s;

struct ToyOptions {
  RunOptions run;
  std::string resume = "auto";
  double lr = 0.1;
};

template <class Visitor>
void visit_fields(ToyOptions& o, Visitor&& field) {
  field("", o.run, "ranks and folder");
  field("resume", o.resume, "whether an older run goes on");
  field("lr", o.lr, "learning rate");
}

ToyOptions taken_again(const fs::path& folder) {
  ToyOptions options;
  load_config(options, Lines{"--config", folder / "config.yaml"}, {"toy", "", "", {}});
  return options;
}

class RunFolder : public testing::Test {
 protected:
  RunFolder() { options_.run.run_dir = runs_; }

  RunRequest request() { return {"tandem toy", {"./toy", "--note", "a b"}, options_.run, fields_of(options_)}; }
  fs::path make(const WorkerEnv& env = {}) { return make_run_folder(request(), env, kMoment); }
  void record(const fs::path& folder, const WorkerEnv& env = {}) {
    record_start(folder, request(), env, {"cpu"}, kMoment);
  }
  Error error() {
    return error_of([&] { make(); });
  }

  TempFolder temporary_;
  fs::path runs_ = fs::path(temporary_.path()) / "deep/runs";
  ToyOptions options_;
};

TEST_F(RunFolder, IsNamedByTheProgramAndTheTimeAndIsNotShared) {
  EXPECT_EQ(make(), runs_ / "toy-20261115-052343");
  EXPECT_EQ(make(), runs_ / "toy-20261115-052343-2");
  EXPECT_EQ(make(), runs_ / "toy-20261115-052343-3");
  EXPECT_TRUE(fs::is_directory(runs_ / "toy-20261115-052343-3"));
}

TEST_F(RunFolder, IsAnotherOneForEachOfManyThatBeginAtOnce) {
  std::vector<fs::path> folders(8);
  std::vector<std::thread> threads;
  for (fs::path& folder : folders) threads.emplace_back([&] { folder = make(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set(folders.begin(), folders.end()).size(), 8U);
}

TEST_F(RunFolder, IsAWholePathWhereverTheRunIs) {
  options_.run.run_dir = fs::relative(runs_);
  EXPECT_TRUE(make().is_absolute());
}

TEST_F(RunFolder, IsWhatLatestPointsToWithoutAWholePath) {
  record(make());
  EXPECT_EQ(fs::read_symlink(runs_ / "latest"), "toy-20261115-052343");
  record(make());
  EXPECT_EQ(fs::read_symlink(runs_ / "latest"), "toy-20261115-052343-2");
  EXPECT_EQ(std::distance(fs::directory_iterator(runs_), fs::directory_iterator()), 3);
}

TEST_F(RunFolder, IsNotTheLatestBeforeTheRunBegins) {
  record(make());
  make();
  EXPECT_EQ(fs::read_symlink(runs_ / "latest"), "toy-20261115-052343");
}

TEST_F(RunFolder, LeavesALatestThatIsNoLinkAlone) {
  temporary_.add("deep/runs/latest", "mine");
  record(make());
  EXPECT_EQ(read_file(runs_ / "latest"), "mine");
}

TEST_F(RunFolder, IsTheLatestOneWhenThatGoesOn) {
  const fs::path folder = make();
  record(folder);
  options_.resume = "latest";
  EXPECT_EQ(make(), folder);
}

TEST_F(RunFolder, IsANewOneForTheWeightsOfTheLatest) {
  const fs::path first = make();
  record(first);
  options_.resume = "weights";
  const fs::path second = make();
  EXPECT_EQ(options_.resume, str("weights:", first.native()));
  EXPECT_NE(second, first);
  record(second);
  EXPECT_EQ(taken_again(second).resume, options_.resume);
}

TEST_F(RunFolder, NeedsARunToTakeTheWeightsOf) {
  options_.resume = "weights";
  EXPECT_EQ(error().kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error().message(), {(runs_ / "latest").native()}));
}

TEST_F(RunFolder, IsNotMadeWhenThereIsNoRunToGoOnWith) {
  options_.resume = "latest";
  EXPECT_EQ(error().kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error().message(), {(runs_ / "latest").native()}));
  EXPECT_TRUE(says(error().hint(), {"--resume", "--run-dir", "--name"}));
  options_.run.name = "first";
  EXPECT_TRUE(says(error().message(), {(runs_ / "first").native()}));
  EXPECT_FALSE(fs::exists(runs_));
}

TEST_F(RunFolder, IsTheNamedOneWhetherItIsThereOrNot) {
  make();
  options_.run.name = "first";
  EXPECT_EQ(make(), runs_ / "first");
  record(make());
  EXPECT_EQ(fs::read_symlink(runs_ / "latest"), "first");
  options_.resume = "latest";
  EXPECT_EQ(make(), runs_ / "first");
}

TEST_F(RunFolder, StaysTheSameWhenALauncherStartsTheRanksAgain) {
  WorkerEnv env{.tandem_run_id = "outer/toy-3c17ee"};
  EXPECT_EQ(make(env), runs_ / "toy-3c17ee");
  env.restart_count = 1;
  EXPECT_EQ(make(env), runs_ / "toy-3c17ee");
  EXPECT_EQ(make({.restart_count = 1, .run_id = "job/7"}), runs_ / "toy-job-7");
  const fs::path first = make({.restart_count = 0, .max_restarts = 1, .run_id = "none"});
  EXPECT_EQ(make({.restart_count = 1, .max_restarts = 1, .run_id = "none"}), first);
}

TEST_F(RunFolder, IsWhatTheFirstStartChoseThoughLatestHasMoved) {
  const TempFolder logs;
  WorkerEnv env{.max_restarts = 1, .tandem_run_id = "toy-3c17ee", .log_dir = logs.path()};
  for (const std::string resume : {"latest", "weights"}) {
    options_.resume = "auto";
    const fs::path older = make();
    record(older);
    options_.resume = resume;
    env.restart_count = 0;
    const fs::path folder = make(env);
    const std::string settled = options_.resume;
    options_.resume = "auto";
    record(make());  // another run, which is the latest now
    options_.resume = resume;
    env.restart_count = 1;
    EXPECT_EQ(make(env), folder);
    EXPECT_EQ(options_.resume, settled);
    EXPECT_EQ(folder == older, resume == "latest");
  }
}

TEST_F(RunFolder, IsTheOneThatWasMadeBeforeTheSelfLaunch) {
  EXPECT_EQ(make({.run_folder = "/elsewhere/one"}), "/elsewhere/one");
  EXPECT_FALSE(fs::exists(runs_));
}

TEST_F(RunFolder, ThatCannotBeMadeIsAnErrorThatSaysWhatToDo) {
  temporary_.add("deep/runs/first");
  options_.run.name = "first";
  EXPECT_TRUE(says(error().message(), {(runs_ / "first").native(), "File exists"}));
  options_.run.run_dir = runs_ / "first/below";
  EXPECT_TRUE(says(error().message(), {(runs_ / "first/below").native(), "Not a directory"}));
  EXPECT_TRUE(says(error().hint(), {"--run-dir", "--name"}));
  EXPECT_EQ(error().kind(), ErrorKind::Data);
}

TEST(RunOptions, RefuseNamesThatAreNoFolderOfTheirOwn) {
  for (const char* name : {"a/b", "..", ".", "latest", "/tmp"}) {
    const Error error = error_of([&] { validate(RunOptions{.name = name}); });
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    EXPECT_TRUE(says(error.message(), {str("'", name, "'")}));
  }
  const Error control = error_of([] { validate(RunOptions{.name = "a\x1b[31m"}); });
  EXPECT_TRUE(says(control.message(), {"name", "control character"}));
  EXPECT_EQ(error_of([] { validate(RunOptions{.name = "lr-0.1"}); }).message(), "");
}

TEST_F(RunFolder, HoldsSettingsThatBeginAnotherRunWhenTheyAreTakenAgain) {
  options_ = {.run = {.ranks = {.nproc = 2, .device = "cpu"}, .run_dir = runs_, .name = "first"},
              .resume = "auto",
              .lr = 1.0 / 3};
  const fs::path folder = make();
  options_.resume = "latest";
  record(folder);

  const ToyOptions again = taken_again(folder);
  EXPECT_EQ(again.lr, 1.0 / 3);
  EXPECT_EQ(again.run.ranks.nproc, 2);
  EXPECT_EQ(again.run.ranks.device, "cpu");
  EXPECT_EQ(again.run.run_dir, runs_);
  EXPECT_EQ(again.run.name, "");
  EXPECT_EQ(again.resume, "auto");
}

TEST_F(RunFolder, HoldsTheCheckpointThatARunBeganWith) {
  options_.resume = "weights:/runs/old/checkpoints";
  const fs::path folder = make();
  record(folder);
  EXPECT_EQ(taken_again(folder).resume, options_.resume);
}

TEST_F(RunFolder, HoldsEveryStartAsALineToPaste) {
  const fs::path folder = make();
  record(folder);
  options_.lr = 0.5;
  record(folder, {.restart_count = 1, .is_launched = true, .run_folder = folder});
  const World three{.size = 3, .local_size = 3};
  record(folder, {.world = three, .is_launched = true});
  record(folder, {.world = three, .devices = {"cpu", "cpu", "cpu"}, .is_launched = true});
  record(folder, {.world = three, .devices = {"cuda:0", "cuda:1", "cuda:1"}, .is_launched = true});
  EXPECT_EQ(split(read_file(folder / "command.txt"), '\n'),
            (Lines{"./toy --note 'a b'  # 2026-11-15T05:23:43.000Z",
                   "./toy --note 'a b'  # 2026-11-15T05:23:43.000Z, restart 1",
                   "tandem run -n 3 ./toy --note 'a b'  # 2026-11-15T05:23:43.000Z",
                   "tandem run -n 3 --device cpu ./toy --note 'a b'  # 2026-11-15T05:23:43.000Z",
                   "tandem run -n 3 --device 0,1,1 ./toy --note 'a b'  # 2026-11-15T05:23:43.000Z", ""}));
  EXPECT_NE(read_file(folder / "config.yaml").find("lr: 0.5"), std::string::npos);
}

TEST_F(RunFolder, BelongsToOneRunAtATime) {
  const fs::path folder = make();
  {
    const Fd lock = lock_run_folder(folder);
    const Error error = error_of([&] { lock_run_folder(folder); });
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    EXPECT_TRUE(says(error.message(), {folder.native()}));
  }
  EXPECT_EQ(error_of([&] { lock_run_folder(folder); }).message(), "");
}

TEST_F(RunFolder, OfAStoppedRunIsNamedByTheCommandThatGoesOn) {
  options_.run.name = "first";
  const RunOptions plain{.name = "first"};
  const auto command = [&](const RunOptions& run, const WorkerEnv& env) {
    return resume_command(make(), {"toy", {"./toy", "train", "--name=old", "--lr", "2"}, run, {}, 2}, env);
  };
  EXPECT_EQ(command(plain, {}), "./toy train --name first --resume latest");
  EXPECT_EQ(command(options_.run, {}), str("./toy train --run-dir ", runs_, " --name first --resume latest"));
  const WorkerEnv two{.world = {.size = 2, .local_size = 2}, .is_launched = true};
  EXPECT_EQ(command(plain, two), "tandem run -n 2 ./toy train --name first --resume latest");
}

TEST_F(RunFolder, HasTheSettingsThatTheRunContinuesWith) {
  options_.run.name = "first";
  options_.lr = 0.5;
  record(make());
  const auto earlier = [&](const Lines& args, const WorkerEnv& env = {}) {
    ToyOptions given;
    const std::vector<Field> fields = load_config(given, args, {"toy", "", "", {}}).fields;
    return earlier_settings(fields, env);
  };
  const std::string runs = runs_.native();
  const std::string here = "--run-dir=" + runs;
  EXPECT_EQ(earlier({here, "--resume", "latest"})->file, runs_ / "latest/config.yaml");
  EXPECT_EQ(earlier({here, "--resume", "latest", "--name", "first"})->file, runs_ / "first/config.yaml");
  EXPECT_EQ(earlier({"--resume", runs})->file, runs_ / "latest/config.yaml");
  EXPECT_EQ(earlier({"--resume", runs + "/first/checkpoints"})->file, runs_ / "first/config.yaml");
  EXPECT_EQ(earlier({"--resume", "latest"}, {.run_folder = runs + "/first"})->file, runs_ / "first/config.yaml");
  for (const char* resume : {"auto", "no", "weights"}) EXPECT_EQ(earlier({here, "--resume", resume}), std::nullopt);
  EXPECT_EQ(earlier({here, "--resume", "latest", "--name", "other"}), std::nullopt);
  const auto ranks = [&](const WorkerEnv& env) {
    return std::ranges::count(earlier({here, "--resume", "latest"}, env)->left_out, "nproc");
  };
  EXPECT_EQ(ranks({}), 0);
  EXPECT_EQ(ranks({.is_launched = true}), 1);  // by the user, who chose the ranks
}

TEST_F(RunFolder, ToResumeThatIsNotThereIsNamedBeforeAnythingElse) {
  options_.run.name = "first";
  const auto check = [&](const std::string& resume, const WorkerEnv& env = {}) {
    options_.resume = resume;
    return error_of([&] { check_resumed_run(request(), env); });
  };
  make();
  for (const std::string& resume : {std::string("latst"), (runs_ / "nothere").native()}) {
    EXPECT_EQ(check(resume).kind(), ErrorKind::Checkpoint);
    EXPECT_TRUE(says(check(resume).message(), {resume}));
  }
  EXPECT_TRUE(says(check("latst").hint(), {"--resume latest?"}));
  EXPECT_TRUE(says(check((runs_ / "nothere").native()).hint(), {"--resume takes", "latest", "weights:PATH"}));
  EXPECT_TRUE(says(check("latest").message(), {(runs_ / "first").native(), "config.yaml"}));
  EXPECT_TRUE(says(check((runs_ / "first").native()).message(), {(runs_ / "first").native(), "config.yaml"}));
  EXPECT_EQ(check("latst", {.world = {.rank = 1, .size = 2}}).message(), "");  // its host may not see the folder
  for (const char* resume : {"auto", "no", "weights"}) EXPECT_EQ(check(resume).message(), "");
  record(runs_ / "first");
  EXPECT_EQ(check("latest").message(), "");
  options_.run.name = "frist";
  options_.resume = "latest";
  EXPECT_TRUE(says(error_of([&] { make(); }).hint(), {"--name first"}));
}

TEST_F(RunFolder, ThatWasMadeForARunThatDidNotBeginIsRemoved) {
  const NewFolders all(options_.run);
  const fs::path folder = make();
  fs::create_directory(folder / "checkpoints");
  all.remove_if_empty(folder);
  EXPECT_FALSE(fs::exists(runs_.parent_path()));
  EXPECT_TRUE(fs::exists(temporary_.path()));

  fs::create_directories(runs_);
  const NewFolders one(options_.run);
  one.remove_if_empty(make());
  EXPECT_TRUE(fs::is_empty(runs_));
}

TEST_F(RunFolder, ThatWasRemovedSinceTheRunDidNotBeginIsMadeAgainByTheRestart) {
  const TempFolder logs;
  const WorkerEnv env{.max_restarts = 1, .log_dir = logs.path()};
  const NewFolders first(options_.run);
  const fs::path folder = make(env);
  first.remove_if_empty(folder);
  EXPECT_FALSE(fs::exists(runs_));
  WorkerEnv again = env;
  again.restart_count = 1;
  EXPECT_EQ(make(again), folder);
  EXPECT_TRUE(fs::exists(folder));
}

TEST_F(RunFolder, ThatWasThereOrHasSomethingInItIsNotRemoved) {
  options_.run.name = "first";
  fs::create_directories(runs_ / "first");
  const NewFolders none(options_.run);
  none.remove_if_empty(make());
  EXPECT_TRUE(fs::exists(runs_ / "first"));
  options_.run.name = "second";
  const NewFolders second(options_.run);
  make();
  temporary_.add("deep/runs/second/logs/rank0.log");
  second.remove_if_empty(runs_ / "second");
  EXPECT_TRUE(fs::exists(runs_ / "second/logs/rank0.log"));
}

TEST_F(RunFolder, HoldsNothingThatWouldDetachTheNextRun) {
  options_.run.ranks.detach = true;
  const fs::path folder = make();
  record(folder);
  EXPECT_FALSE(taken_again(folder).run.ranks.detach);
}

}  // namespace
}  // namespace tandem
