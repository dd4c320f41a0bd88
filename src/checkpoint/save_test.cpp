#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tandem/error.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/worker_env.h"
#include "checkpoint/power_cut_test.h"
#include "checkpoint/sample_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

TEST(Save, MakesTheFolderAndItsPointer) {
  const TempFolder temp;
  const fs::path folder = fs::path(temp.path()) / "runs" / "a" / "checkpoints";
  EXPECT_EQ(save_sample(kernel_files(), folder, 120), folder / "step-00000120");
  EXPECT_EQ(names_in(folder), (Names{"latest", "step-00000120"}));
  EXPECT_EQ(names_in(folder / "step-00000120"), (Names{"DONE", "model.safetensors", "state.json"}));
  EXPECT_EQ(read_file(folder / "latest"), "step-00000120\n");
  EXPECT_TRUE(holds_sample(folder / "step-00000120", 120));
}

TEST(Save, KeepsTheLastOnes) {
  const TempFolder temp;
  for (const int step : {1, 2, 3, 4}) save_sample(kernel_files(), temp.path(), step, {.keep_last = 2});
  EXPECT_EQ(names_in(temp.path()), (Names{"latest", "step-00000003", "step-00000004"}));
  for (const int step : {5, 6, 7}) save_sample(kernel_files(), temp.path(), step, {.keep_last = 0});
  EXPECT_EQ(names_in(temp.path()).size(), 6U);
}

TEST(Save, KeepsTheBestOneBesides) {
  const TempFolder temp;
  const std::vector<double> losses = {3.5, 2.25, 2.25, 4, std::nan("")};
  for (int step = 0; step < 5; ++step) save_sample(kernel_files(), temp.path(), step, {.keep_last = 1}, losses[step]);
  EXPECT_EQ(names_in(temp.path()), (Names{"best", "latest", "step-00000001", "step-00000004"}));
  EXPECT_EQ(read_file(fs::path(temp.path()) / "best"), "step-00000001\n");
}

TEST(Save, MayTakeAHigherMetricForBetter) {
  const TempFolder temp;
  const Retention retention = {.keep_last = 1, .keep_best = true, .better = Better::Higher};
  for (const int step : {1, 2, 3}) save_sample(kernel_files(), temp.path(), step, retention, step == 2 ? 0.75 : 0.5);
  EXPECT_EQ(read_file(fs::path(temp.path()) / "best"), "step-00000002\n");
  for (const int step : {4, 5})
    save_sample(kernel_files(), temp.path(), step, {.keep_last = 1, .keep_best = false}, 0.5);
  EXPECT_FALSE(fs::exists(fs::path(temp.path()) / "step-00000002"));
}

// A run that resumes from step 1: its step 2 is newer than step 3 of the first attempt.
TEST(Save, CountsTheOrderOfSavesNotOfSteps) {
  const TempFolder temp;
  for (const int step : {1, 2, 3}) save_sample(kernel_files(), temp.path(), step);
  save_sample(kernel_files(), temp.path(), 2, {.keep_last = 2}, {}, 1);
  EXPECT_EQ(names_in(temp.path()), (Names{"latest", "step-00000002", "step-00000003"}));
  EXPECT_EQ(read_file(fs::path(temp.path()) / "latest"), "step-00000002\n");
  const FoundCheckpoint found = find_checkpoint(temp.path());
  EXPECT_EQ(found.path->filename(), "step-00000002");
  EXPECT_TRUE(holds_sample(*found.path, 2, 1));
}

// Steps 1 to 4 are of others, step 5 was loaded.
TEST(Save, RemovesOnlyWhatIsItsOwn) {
  const TempFolder temp;
  for (const int step : {1, 2, 3, 4, 5}) save_sample(kernel_files(), temp.path(), step, {.keep_last = 0});
  std::set<std::string> own = {"step-00000005"};
  const Retention retention{.keep_last = 2};
  for (const int step : {6, 7, 8}) {
    save_files(kernel_files(), temp.path(), step, {}, sample_files(step), {retention, &own});
    own.insert(checkpoint_name(step));
  }
  EXPECT_EQ(names_in(temp.path()), (Names{"latest", "step-00000001", "step-00000002", "step-00000003", "step-00000004",
                                          "step-00000007", "step-00000008"}));
}

// After a damaged DONE with the greatest number.
TEST(Save, IsTheNewestWhateverNumbersAreThere) {
  const TempFolder temp;
  save_sample(kernel_files(), temp.path(), 1);
  Manifest manifest = read_manifest(fs::path(temp.path()) / "step-00000001");
  manifest.number = kMaxNumber;
  temp.add("step-00000001/DONE", manifest_text(manifest));
  save_sample(kernel_files(), temp.path(), 2);
  EXPECT_EQ(find_checkpoint(temp.path()).path->filename(), "step-00000002");
}

class LostFolder : public testing::TestWithParam<std::function<void(const fs::path& run)>> {};

TEST_P(LostFolder, IsAnErrorAndIsNotCreatedAgain) {
  const TempFolder temp;
  const fs::path run = fs::path(temp.path()) / "run";
  save_sample(kernel_files(), run / "checkpoints", 1);
  const SameFolder same(run / "checkpoints");
  const Retention retention;
  const auto save = [&](int step) {
    save_files(kernel_files(), run / "checkpoints", step, {}, sample_files(step), {retention, nullptr, &same});
  };
  save(2);
  GetParam()(run);
  const Error error = error_of([&] { save(3); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {(run / "checkpoints").native()}));
  EXPECT_FALSE(fs::exists(run / "checkpoints/step-00000003"));
}

INSTANTIATE_TEST_SUITE_P(By, LostFolder,
                         testing::Values([](const fs::path& run) { fs::remove_all(run); },
                                         [](const fs::path& run) { fs::rename(run, run.native() + "-old"); },
                                         [](const fs::path& run) {
                                           fs::rename(run / "checkpoints", run / "old");
                                           fs::create_directory(run / "checkpoints");
                                         }));

// `latest` is not read for ever, but replaced.
TEST(Save, DoesNotWaitForAFifo) {
  const TempFolder temp;
  ASSERT_EQ(::mkfifo((temp.path() + "/latest").c_str(), 0600), 0);
  save_sample(kernel_files(), temp.path(), 1);
  EXPECT_EQ(read_file(temp.path() + "/latest"), "step-00000001\n");
}

// A file system of 64 pages and 16 inodes, for this process only.
bool mount_small(const fs::path& folder) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=256k,nr_inodes=16") == 0;
}

// Saves and keeps all, until it fails; what is there then, and what was said.
std::string fill(const fs::path& folder, std::size_t num_bytes) {
  const std::string bytes(num_bytes, 'x');
  std::int64_t step = 0;
  const Retention retention{.keep_last = 0};
  const Error error = error_of([&] {
    for (; step < 20; ++step) {
      const std::vector<NamedContent> contents = {{"model.safetensors", {.text = bytes}}};
      save_files(kernel_files(), folder, step, {}, contents, {retention});
    }
  });
  const FoundCheckpoint found = find_checkpoint(folder, Which::Newest, Check::Checksums);
  std::string names;
  for (const std::string& name : names_in(folder)) names += str(' ', name);
  const bool is_last = found.path && found.path->filename() == checkpoint_name(step - 1) && found.passed_over.empty();
  return str(kind_name(error.kind()), ": ", error.message(), "; ", error.hint(), is_last ? " whole" : " lost", names);
}

TEST(Save, WithoutInodesOrSpaceKeepsWhatWasThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  const auto answer = [](std::size_t num_bytes) {
    const TempFolder temp;
    Pipe pipe = make_pipe();
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_there = mount_small(temp.path());
      write_all(pipe.write.get(), is_there ? fill(temp.path(), num_bytes) : "no mount");
      ::_exit(0);
    }
    pipe.write = Fd();
    std::string text = read_all(pipe.read.get()).value();
    ::waitpid(child, nullptr, 0);
    return text;
  };
  if (answer(1) == "no mount") GTEST_SKIP() << "no mounts here";
  const std::string names = " whole latest step-00000000 step-00000001";
  const std::string four = names + " step-00000002 step-00000003";  // of three inodes each
  EXPECT_TRUE(says(answer(1), {"checkpoint: ", "No space left on device", "inodes", four}));
  EXPECT_TRUE(says(answer(100'000), {"checkpoint: ", "No space left on device", "100000 bytes", names}));
}

TEST(Save, RemovesWhatKilledSavesLeftBehind) {
  const TempFolder temp;
  temp.add(".tmp-step-00000007/model.safetensors", "half");
  temp.add(".tmp-latest", "st");
  temp.add("notes.txt", "mine");
  save_sample(kernel_files(), temp.path(), 8);
  EXPECT_EQ(names_in(temp.path()), (Names{"latest", "notes.txt", "step-00000008"}));
}

TEST(Save, WaitsForAnotherSaveIntoTheFolder) {
  const TempFolder temp;
  QuickFiles files;
  std::future<fs::path> save;
  {
    const Fd other(::open(temp.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
    save = std::async(std::launch::async, [&] { return save_sample(files, temp.path(), 7); });
    EXPECT_EQ(save.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    EXPECT_EQ(names_in(temp.path()), Names());
  }
  EXPECT_TRUE(holds_sample(save.get(), 7));
}

TEST(Save, RefusesNegativeNumbers) {
  const TempFolder temp;
  EXPECT_EQ(error_of([&] { save_sample(kernel_files(), temp.path(), -1); }).kind(), ErrorKind::Checkpoint);
  EXPECT_EQ(error_of([&] { save_sample(kernel_files(), temp.path(), 1, {.keep_last = -1}); }).kind(),
            ErrorKind::Checkpoint);
  EXPECT_EQ(names_in(temp.path()), Names());
}

// A save next to two older checkpoints that is interrupted in operation `operation`, and the results allowed
// afterwards.
struct Scene {
  std::int64_t step = 0;  // of the last save; of the two before 10 and 20
  int version = 0;
  Retention retention;
};

// False if the save has fewer operations.
bool survives_power_cut(const Scene& scene, int operation, Unsynced unsynced, std::mt19937& random) {
  const TempFolder temp;
  PowerCutFiles files(temp.path());
  for (const int step : {10, 20}) save_sample(files, temp.path(), step, {}, step == 10 ? 1.0 : 2.0);
  files.cut_at(operation);
  bool is_saved = true;
  try {
    save_sample(files, temp.path(), scene.step, scene.retention, 3.0, scene.version);
  } catch (const PowerCutFiles::PowerCut&) {
    is_saved = false;
  }

  const TempFolder left;
  files.leave_in(left.path(), unsynced, random);
  const FoundCheckpoint found = find_checkpoint(left.path(), Which::Newest, Check::Checksums);
  EXPECT_TRUE(found.path.has_value());
  EXPECT_TRUE(found.passed_over.empty()) << found.passed_over.front().why;
  if (!found.path) return files.is_cut();
  const bool is_new = holds_sample(*found.path, scene.step, scene.version);
  EXPECT_TRUE(is_new || holds_sample(*found.path, 20));
  const bool must_be_new = is_saved || (scene.step == 30 && files.is_durable("step-00000030"));
  EXPECT_TRUE(is_new || !must_be_new);

  EXPECT_TRUE(find_checkpoint(left.path(), Which::Best, Check::Checksums).path.has_value());
  QuickFiles quick;
  save_sample(quick, left.path(), 40);
  EXPECT_EQ(find_checkpoint(left.path()).path->filename(), "step-00000040");
  EXPECT_FALSE(names_in(left.path()).begin()->starts_with(kTemporaryPrefix));
  return files.is_cut();
}

int num_operations_survived(const Scene& scene, Unsynced unsynced, unsigned seed = 0) {
  std::mt19937 random(seed);
  int operation = 0;
  while (survives_power_cut(scene, operation, unsynced, random) && !testing::Test::HasFailure()) ++operation;
  EXPECT_FALSE(testing::Test::HasFailure()) << "operation " << operation << ", seed " << seed;
  return operation;
}

class PowerCut : public testing::TestWithParam<Unsynced> {
 protected:
  static unsigned num_seeds() { return GetParam() == Unsynced::Random ? 5 : 1; }
};

// 14 operations: the folder, three files written and synced, its sync, its name, the sync of that; the pointer written,
// synced, named, and the sync of that. With keep_last = 1 step 20 is renamed, that is synced, and it is removed (step
// 10 stays as the best).
TEST_P(PowerCut, AtAnyOperationLosesNoDurableCheckpoint) {
  EXPECT_EQ(num_operations_survived({.step = 30, .version = 0, .retention = {}}, GetParam()), 14);
  for (unsigned seed = 0; seed < num_seeds(); ++seed) {
    EXPECT_EQ(num_operations_survived({.step = 30, .version = 0, .retention = {.keep_last = 1}}, GetParam(), seed), 17);
  }
}

// 10 operations up to the new name, and the removal of the old one; the pointer need not change.
TEST_P(PowerCut, AtAnyOperationLosesNoCheckpointThatIsReplaced) {
  for (unsigned seed = 0; seed < num_seeds(); ++seed) {
    EXPECT_EQ(num_operations_survived({.step = 20, .version = 1, .retention = {.keep_last = 1}}, GetParam(), seed), 11);
  }
}

INSTANTIATE_TEST_SUITE_P(Leaving, PowerCut, testing::Values(Unsynced::Lost, Unsynced::Kept, Unsynced::Random));

// The same save as in the power cut, which removes two old checkpoints.
TEST(Save, ThatFailsAtAnyOperationLeavesGoodCheckpointsAndNothingElse) {
  int num_failures = 0;
  for (bool has_failed = true; has_failed;) {
    const TempFolder temp;
    QuickFiles quick;
    for (const int step : {10, 20}) save_sample(quick, temp.path(), step);
    FailingFiles files(num_failures);
    const Error error = error_of([&] { save_sample(files, temp.path(), 30, {.keep_last = 1}); });
    has_failed = files.has_failed();
    EXPECT_EQ(error.message().empty(), !has_failed);
    const FoundCheckpoint found = find_checkpoint(temp.path(), Which::Newest, Check::Checksums);
    ASSERT_TRUE(found.path) << num_failures;
    EXPECT_TRUE(holds_sample(*found.path, 20) || holds_sample(*found.path, 30)) << num_failures;
    EXPECT_TRUE(found.passed_over.empty()) << num_failures;

    save_sample(quick, temp.path(), 30, {.keep_last = 1});
    EXPECT_EQ(names_in(temp.path()), (Names{"latest", "step-00000030"})) << num_failures;
    if (has_failed) ++num_failures;
  }
  EXPECT_EQ(num_failures, 17);
}

TEST(Save, ThatFailsRemovesItsTemporaryFolder) {
  const TempFolder temp;
  save_sample(kernel_files(), temp.path(), 10);
  FailingFiles files(3);
  EXPECT_TRUE(says(error_of([&] { save_sample(files, temp.path(), 20); }).message(), {"cannot do it"}));
  EXPECT_EQ(names_in(temp.path()), (Names{"latest", "step-00000010"}));
}

// Limits the size of files of this process.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  sighandler_t old_handler_;
  rlimit old_{};
};

TEST(Save, ThatTheKernelCutsShortKeepsWhatWasThere) {
  const TempFolder temp;
  save_sample(kernel_files(), temp.path(), 10);
  const Error error = error_of([&] {
    const FileSizeLimit limit(1000);
    save_sample(kernel_files(), temp.path(), 20);
  });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_EQ(error.message(),
            str("cannot write ", temp.path(), "/.tmp-step-00000020/model.safetensors: File too large"));
  EXPECT_EQ(names_in(temp.path()), (Names{"latest", "step-00000010"}));
  EXPECT_TRUE(holds_sample(fs::path(temp.path()) / "step-00000010", 10));
}

TEST(Files, SayHowMuchSpaceAFullDiskLacks) {
  const Error error = error_of([] { kernel_files().write("/dev/full", {.text = "12345", .bytes = {"678"}}); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"/dev/full", "No space left on device"}));
  EXPECT_TRUE(error.hint().starts_with("free some space: this file takes 8 bytes, and ")) << error.hint();
}

TEST(Save, SaysWhichFolderCannotBeMade) {
  const TempFile file("");
  const Error error = error_of([&] { save_sample(kernel_files(), fs::path(file.path()) / "checkpoints", 1); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_EQ(error.message(), str("cannot create the folder ", file.path(), ": File exists"));
}

// Saves step after step from `first` on, and writes each saved step to `pipe`, until killed.
[[noreturn]] void save_for_ever(const fs::path& folder, std::int64_t first, int pipe) {
  for (std::int64_t step = first;; ++step) {
    save_sample(kernel_files(), folder, step, {.keep_last = 2});
    if (!write_all(pipe, str(step, '\n'))) ::_exit(1);
  }
}

// Kills the saving process at a random time after its first save; returns the last step that it reported.
std::int64_t kill_after_first_save(const fs::path& folder, std::int64_t first, std::mt19937& random) {
  Pipe pipe = make_pipe();
  const Stopwatch stopwatch;
  const pid_t child = ::fork();
  if (child == 0) save_for_ever(folder, first, pipe.write.get());
  char start = 0;
  EXPECT_EQ(::read(pipe.read.get(), &start, 1), 1);
  const std::chrono::duration<double> two_saves = 2 * stopwatch.elapsed();
  std::this_thread::sleep_for(two_saves * (static_cast<double>(random()) / 4294967296.0));  // poll: any moment will do
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  pipe.write = Fd();
  std::int64_t told = -1;
  const std::string lines = start + read_all(pipe.read.get()).value();
  for (const std::string& line : split(lines, '\n')) told = to_integer(line).value_or(told);
  return told;
}

TEST(Save, ThatIsKilledAtAnyMomentLosesNothing) {
  const int rounds = environment_variable("TANDEM_SOAK") ? 200 : 20;
  const TempFolder temp;
  std::mt19937 random(20261115);
  std::int64_t newest = -1;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t told = kill_after_first_save(temp.path(), newest + 1, random);
    const FoundCheckpoint found = find_checkpoint(temp.path(), Which::Newest, Check::Checksums);
    EXPECT_TRUE(found.passed_over.empty());
    ASSERT_TRUE(found.path) << round;
    newest = read_manifest(*found.path).step;
    EXPECT_TRUE(newest == told || newest == told + 1) << newest << " after " << told;
    EXPECT_TRUE(holds_sample(*found.path, newest));
  }
  EXPECT_GE(newest, rounds - 1);
}

}  // namespace
}  // namespace tandem
