#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <tandem/error.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <thread>

#include "base/text.h"
#include "base/worker_env.h"
#include "multiproc/moment.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

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

// The number of processes of this program.
int num_processes() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::error_code unreadable;
    const bool is_process = to_integer(entry.path().filename().native()).has_value();
    if (is_process && std::filesystem::read_symlink(entry.path() / "exe", unreadable) == program) ++count;
  }
  return count;
}

std::vector<RankOutcome> kill_some_of_four(const std::set<int>& victims, std::chrono::microseconds delay) {
  return run_ranks_to_end(
      4,
      [&](const World& world) {
        torch::set_num_threads(1);
        Communicator comm = Communicator::join();
        std::thread killer;
        if (victims.contains(world.rank)) {
          killer = std::thread([&] {
            std::this_thread::sleep_for(delay);  // poll: a random time
            print_moment("killed");
            ::raise(SIGKILL);
          });
        }
        try {
          train_for_ever(comm);
        } catch (const Error& error) {
          print_moment("told");
          std::cout << error.message() << std::endl;
        }
        if (killer.joinable()) killer.join();
      },
      60s);
}

// In every third round two ranks are killed at once.
TEST(Killed, RankIsNamedByEverySurvivorWithinASecondAndLeavesNothing) {
  const int rounds = environment_variable("TANDEM_SOAK") ? 200 : 20;
  std::mt19937 random(20261115);
  for (int round = 0; round < rounds; ++round) {
    std::set<int> victims = {static_cast<int>(random() % 4)};
    if (round % 3 == 2) victims.insert(static_cast<int>(random() % 4));
    const auto ends = kill_some_of_four(victims, std::chrono::microseconds(random() % 150'000));
    if (ends.empty()) continue;  // this process is a rank of a later round
    double killed_at = 0;
    for (const int victim : victims) killed_at = std::max(killed_at, moment_of("killed", ends[victim]));
    EXPECT_GT(killed_at, 0);
    for (int rank = 0; rank < 4; ++rank) {
      if (victims.contains(rank)) continue;
      EXPECT_LT(moment_of("told", ends[rank]) - killed_at, 1.0) << "round " << round << ", rank " << rank;
      const bool is_victim = std::any_of(victims.begin(), victims.end(), [&](int victim) {
        return ends[rank].output.find(str("comm: rank ", victim, " was lost")) != std::string::npos;
      });
      EXPECT_TRUE(is_victim) << ends[rank].output;
    }
  }
  EXPECT_EQ(num_processes(), 1);
}

}  // namespace
}  // namespace tandem
