#include <gtest/gtest.h>
#include <tandem/checkpoint.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <random>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "multiproc/run_ranks.h"
#include "multiproc/shared_folder.h"
#include "train/small_training_test.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The settings of one attempt, which depend on the attempts before. Ranks read them from the environment.
struct Attempt {
  fs::path folder;
  int victim = -1;  // the rank to kill; -1: none
  std::chrono::microseconds delay{0};
};

void kill_later(std::chrono::microseconds delay) {
  std::thread([delay] {
    std::this_thread::sleep_for(delay);  // poll: a random time
    ::raise(SIGKILL);
  }).detach();
}

// Trains up to step 60, with a checkpoint every two steps.
void train(const World& world) {
  const auto words = split(environment_variable("TANDEM_TEST_ATTEMPT").value(), ' ');
  Communicator comm = Communicator::join();
  if (to_integer(words[1]) == world.rank) kill_later(std::chrono::microseconds(*to_integer(words[2])));
  const TrainingOptions options{.epochs = 1000, .max_steps = 60, .seed = 5, .save_every = 2};
  {
    SmallTraining training(comm, kFourShards, options, words[0]);
    std::cout << "begins at " << training->step() << std::endl;
    while (training->has_next()) training.step();
  }
  std::cout << "ended" << std::endl;
  ::_exit(0);  // before it can be killed
}

std::int64_t newest_step(const fs::path& folder) {
  const auto newest = find_checkpoint(folder, Which::Newest, Check::Checksums).path;
  return newest ? load_checkpoint(*newest).step : 0;
}

// True if every rank finished the run. If not, the victim must be the cause.
bool run(int num_ranks, const Attempt& attempt) {
  const std::int64_t step = newest_step(attempt.folder);
  const std::string text = str(attempt.folder, ' ', attempt.victim, ' ', attempt.delay.count());
  if (!is_rank()) set_environment_variable("TANDEM_TEST_ATTEMPT", text);
  const auto ends = run_ranks_to_end(num_ranks, train, 60s);
  bool has_ended = true;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    has_ended = has_ended && ends[rank].output.ends_with("ended\n");
    if (ends[rank].output.find("begins at ") == std::string::npos) continue;
    EXPECT_NE(ends[rank].output.find(str("begins at ", step, '\n')), std::string::npos) << ends[rank].output;
  }
  if (!has_ended) {
    EXPECT_EQ(ends.at(attempt.victim).status.signal, SIGKILL) << failures(ends);
  }
  return has_ended;
}

// The ranks are killed at random times, and their number changes from one attempt to the next.
TEST(Resume, IsBitExactAfterAnyKill) {
  const SharedFolder folder;
  std::mt19937 random(20261115);
  int kills_left = environment_variable("TANDEM_SOAK") ? 200 : 20;
  run(2, {folder / "undisturbed"});
  for (int number = 0; kills_left > 0; ++number) {
    const fs::path disturbed = folder / str("run-", number);
    const auto attempt = [&] {
      const int num_ranks = 1 << random() % 3;
      const int victim = kills_left > 0 ? static_cast<int>(random() % num_ranks) : -1;
      return run(num_ranks, {disturbed, victim, std::chrono::microseconds(random() % 700'000)}) && !is_rank();
    };
    while (!attempt()) --kills_left;
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(read_file(disturbed / "step-00000060" / name), read_file(folder / "undisturbed/step-00000060" / name));
    }
    fs::remove_all(disturbed);
  }
}

}  // namespace
}  // namespace tandem
