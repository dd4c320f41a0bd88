#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tandem/checkpoint.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <iostream>
#include <random>
#include <set>
#include <thread>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/other_user_test.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "train/small_training_test.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::int64_t kNumSteps = 60;

// The settings of one attempt, which depend on the attempts before. Ranks read them from the environment.
struct Attempt {
  fs::path folder;
  int victim = -1;  // the rank that gets a signal; -1: none
  int signal = 0;
  std::chrono::microseconds delay{0};
};

void signal_later(int signal, std::chrono::microseconds delay) {
  std::thread([=] {
    std::this_thread::sleep_for(delay);  // poll: a random time
    ::kill(::getpid(), signal);
  }).detach();
}

// Trains with a checkpoint every two steps, as a user for whom permissions count.
void train(const World& world) {
  const auto words = split(environment_variable("TANDEM_TEST_ATTEMPT").value(), ' ');
  const bool is_root = ::geteuid() == 0;
  ASSERT_TRUE(!is_root || ::fchown(read_worker_env().memory_fd, kNobody, kNobody) == 0);  // as its launcher's
  ASSERT_TRUE(become_other_user());
  Communicator comm = Communicator::join();
  if (to_integer(words[1]) == world.rank) {
    signal_later(static_cast<int>(*to_integer(words[2])), std::chrono::microseconds(*to_integer(words[3])));
  }
  const TrainingOptions options{.epochs = 1000, .max_steps = kNumSteps, .seed = 5, .save_every = 2};
  {
    SmallTraining training(comm, kFourShards, options, words[0]);
    std::cout << "begins at " << training->step() << std::endl;
    while (training->has_next()) training.step();
    std::cout << "ends at " << training->step() << std::endl;
  }
  ::_exit(0);  // before it can be killed
}

std::vector<RankOutcome> run(int num_ranks, const Attempt& attempt) {
  set_environment_variable("TANDEM_TEST_ATTEMPT",
                           str(attempt.folder, ' ', attempt.victim, ' ', attempt.signal, ' ', attempt.delay.count()));
  return run_ranks_to_end(num_ranks, train, 60s);
}

// The number after `word` in the output of a rank.
std::optional<std::int64_t> number_after(const std::string& word, const RankOutcome& end) {
  const std::size_t at = end.output.find(word);
  if (at == std::string::npos) return std::nullopt;
  return to_integer(split(end.output.substr(at + word.size()), '\n').front());
}

std::int64_t newest_step(const fs::path& folder) {
  const auto newest = find_checkpoint(folder, Which::Newest, Check::Checksums).path;
  return newest ? load_checkpoint(*newest).step : 0;
}

// Runs the attempt from the newest checkpoint. False if a rank died of its signal; otherwise all ranks have saved the
// same last step, which a signal that stops a run decides.
bool ends_well(int num_ranks, const Attempt& attempt) {
  const std::int64_t begin = newest_step(attempt.folder);
  const auto ends = run(num_ranks, attempt);
  for (const RankOutcome& end : ends) EXPECT_EQ(number_after("begins at ", end).value_or(begin), begin) << end.output;
  if (attempt.victim >= 0 && ends.at(attempt.victim).status.signal == attempt.signal) return false;
  EXPECT_EQ(failures(ends).find("still running"), std::string::npos) << failures(ends);
  const std::int64_t newest = newest_step(attempt.folder);
  for (const RankOutcome& end : ends) EXPECT_EQ(number_after("ends at ", end), newest) << failures(ends);
  EXPECT_TRUE(newest == kNumSteps || attempt.victim >= 0) << newest;
  return true;
}

// The names of all files and folders below, with sizes and times of files.
std::set<std::string> contents_of(const fs::path& folder) {
  std::set<std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool is_file = entry.is_regular_file();
    contents.insert(str(entry.path(), ' ', is_file ? entry.file_size() : 0, ' ',
                        is_file ? entry.last_write_time().time_since_epoch().count() : 0));
  }
  return contents;
}

// A run does not begin anew while the newest checkpoint cannot be read, and leaves everything as it is.
void expect_stopped_while_unreadable(const fs::path& folder, int num_ranks, std::mt19937& random) {
  const fs::path newest = find_checkpoint(folder).path.value();
  const std::array<fs::path, 5> places = {folder, newest, newest / "DONE", newest / "state.json",
                                          newest / "model.safetensors"};
  const fs::path& place = places.at(random() % places.size());
  const auto before = contents_of(folder);
  const fs::perms mode = fs::status(place).permissions();
  fs::permissions(place, fs::perms::none);
  const auto ends = run(num_ranks, {.folder = folder});
  fs::permissions(place, mode);
  EXPECT_EQ(ends.at(0).status.code, 9) << failures(ends);
  EXPECT_TRUE(says(ends.at(0).output, {place.native(), "Permission denied"}));
  for (const RankOutcome& end : ends) {
    EXPECT_FALSE(end.status.ok() || end.out_of_time) << end.output;
    EXPECT_EQ(number_after("begins at ", end), std::nullopt);
  }
  EXPECT_EQ(contents_of(folder), before);
}

// The ranks get signals at random times, and their number changes from one attempt to the next; in between, checkpoints
// cannot be read.
TEST(Resume, IsBitExactAfterAnyInterruptionAndNothingIsLost) {
  const SharedFolder folder;
  while (is_rank()) run_ranks_to_end(1, train, 60s);  // up to the call for which it was started
  fs::permissions(folder / "", fs::perms(0755));
  give_to_other_user(folder / "");
  std::mt19937 random(20261115);
  const auto random_ranks = [&] { return 1 << random() % 3; };
  constexpr std::array<int, 4> kSignals = {SIGKILL, SIGKILL, SIGTERM, SIGINT};
  const int num_interruptions = environment_variable("TANDEM_SOAK") ? 200 : 15;
  int interruptions_left = num_interruptions;
  int num_unreadable = 0;
  EXPECT_TRUE(ends_well(2, {folder / "undisturbed"}));
  for (int number = 0; interruptions_left > 0 && !HasFailure(); ++number) {
    const fs::path disturbed = folder / str("run-", number);
    while (newest_step(disturbed) < kNumSteps && !HasFailure()) {
      const int num_ranks = random_ranks();
      Attempt attempt{.folder = disturbed};
      if (interruptions_left > 0) {
        attempt.victim = static_cast<int>(random() % static_cast<unsigned>(num_ranks));
        attempt.signal = kSignals.at(random() % kSignals.size());
        attempt.delay = std::chrono::microseconds(random() % 700'000);
      }
      const bool is_over = ends_well(num_ranks, attempt) && newest_step(disturbed) == kNumSteps;
      if (!is_over) --interruptions_left;
      if (newest_step(disturbed) == 0 || random() % 2 == 0) continue;
      expect_stopped_while_unreadable(disturbed, random_ranks(), random);
      ++num_unreadable;
    }
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(read_file(disturbed / "step-00000060" / name), read_file(folder / "undisturbed/step-00000060" / name));
    }
    fs::remove_all(disturbed);
  }
  EXPECT_GT(num_unreadable, 0);
  std::cout << num_interruptions - interruptions_left << " interruptions, " << num_unreadable
            << " starts while the newest checkpoint could not be read" << std::endl;
}

}  // namespace
}  // namespace tandem
