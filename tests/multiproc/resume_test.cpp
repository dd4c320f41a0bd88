#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
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

// What one attempt at a run is to do. Ranks read it from the environment: what the attempts before did decides it.
struct Attempt {
  fs::path folder;
  int victim = -1;  // the rank to be killed; -1: none
  std::chrono::microseconds delay{0};
};

void kill_later(std::chrono::microseconds delay) {
  std::thread([delay] {
    std::this_thread::sleep_for(delay);  // poll: any moment will do
    ::raise(SIGKILL);
  }).detach();
}

// 60 steps with a checkpoint after every second one, or what is left of them.
void train(const World& world) {
  const auto words = split(environment_variable("TANDEM_TEST_ATTEMPT").value(), ' ');
  Communicator comm = Communicator::join();
  if (to_integer(words[1]) == world.rank) kill_later(std::chrono::microseconds(*to_integer(words[2])));
  const TrainingOptions options{.epochs = 1000, .max_steps = 60, .seed = 5, .save_every = 2};
  {
    SmallTraining training(comm, {.batch_size = 3, .shards = 4}, options, words[0]);
    while (training->has_next()) training.step();
  }
  std::cout << "ended" << std::endl;
  ::_exit(0);  // before the killer comes
}

// Whether every rank came to the end of the run.
bool run(int num_ranks, const Attempt& attempt) {
  const std::string text = str(attempt.folder, ' ', attempt.victim, ' ', attempt.delay.count());
  if (!is_rank()) set_environment_variable("TANDEM_TEST_ATTEMPT", text);
  const auto ends = run_ranks_to_end(num_ranks, train, 60s);
  return std::all_of(ends.begin(), ends.end(), [](const RankOutcome& end) { return end.output.ends_with("ended\n"); });
}

// The ranks are killed at random times, and their number changes from one attempt to the next.
TEST(Resume, AfterAnyKillEndsInTheSameBytes) {
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
