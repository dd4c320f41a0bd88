#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <tandem/error.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

double now() { return std::chrono::duration<double>(Stopwatch::Clock::now().time_since_epoch()).count(); }

// Trains until a peer is lost.
void train_for_ever(Communicator& comm) {
  torch::nn::Sequential net(torch::nn::Linear(64, 256), torch::nn::ReLU(), torch::nn::Linear(256, 64));
  DistributedDataParallel model(net, comm, {.first_bucket = {20'000}, .bucket = {40'000}});
  const auto x = torch::randn({8, 64});
  while (true) {
    net->zero_grad();
    model(x).square().mean().backward();
  }
}

// The moment that an outcome's output names after `word`.
double moment_after(const RankOutcome& outcome, const std::string& word) {
  const std::size_t at = outcome.output.find(word);
  return at == std::string::npos ? 0 : std::stod(outcome.output.substr(at + word.size()));
}

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path());
  return names;
}

std::vector<RankOutcome> kill_one_of_four(int victim, std::chrono::microseconds delay) {
  return run_ranks_to_end(
      4,
      [&](const World& world) {
        torch::set_num_threads(1);
        Communicator comm = Communicator::join();
        std::thread killer;
        if (world.rank == victim) {
          killer = std::thread([&] {
            std::this_thread::sleep_for(delay);  // poll: any moment will do
            std::cout << "killed at " << str(now()) << std::endl;
            ::raise(SIGKILL);
          });
        }
        try {
          train_for_ever(comm);
        } catch (const Error& error) {
          std::cout << "told at " << str(now()) << '\n' << error.message() << std::endl;
        }
        if (killer.joinable()) killer.join();
      },
      60s);
}

TEST(Killed, RankIsNamedByEverySurvivorWithinASecondAndLeavesNothing) {
  const auto before = names_in("/dev/shm");
  const int rounds = environment_variable("TANDEM_SOAK") ? 200 : 20;
  std::mt19937 random(20261115);
  for (int round = 0; round < rounds; ++round) {
    const auto victim = static_cast<int>(random() % 4);
    const auto ends = kill_one_of_four(victim, std::chrono::microseconds(random() % 150'000));
    if (ends.empty()) continue;  // this process is a rank of a later round
    const double killed_at = moment_after(ends[victim], "killed at ");
    EXPECT_GT(killed_at, 0);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      EXPECT_LT(moment_after(ends[rank], "told at ") - killed_at, 1.0) << "round " << round << ", rank " << rank;
      EXPECT_NE(ends[rank].output.find(str("rank ", victim, " was lost")), std::string::npos) << ends[rank].output;
    }
  }
  EXPECT_EQ(names_in("/dev/shm"), before);
}

}  // namespace
}  // namespace tandem
