#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <torch/torch.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "multiproc/run_ranks.h"
#include "multiproc/transport_contract.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// All ranks on the one GPU. NCCL refuses that unless it takes them for ranks of different hosts.
Communicator join_on_one_gpu(const World& world, const CommOptions& options, int num_nodes = 1) {
  std::string devices = "cuda:0";
  for (int rank = 1; rank < world.size; ++rank) devices += ",cuda:0";
  ::setenv("TANDEM_DEVICES", devices.c_str(), 1);
  ::setenv("NCCL_HOSTID", std::to_string(world.rank).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  if (num_nodes > 1) ::setenv("GROUP_WORLD_SIZE", std::to_string(num_nodes).c_str(), 1);
  return Communicator::join(options);
}

void check_contract(Communicator& comm) {
  for (const ContractClause& clause : transport_contract()) {
    SCOPED_TRACE(clause.fact);
    clause.check(comm);
  }
}

class Nccl : public testing::TestWithParam<int> {};

TEST_P(Nccl, KeepsTheContract) {
  run_ranks(
      GetParam(),
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        EXPECT_EQ(comm.transport_name(), "nccl");
        check_contract(comm);
      },
      250s);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, testing::Values(1, 2, 3, 4, 7));

class ShmOfCudaTensors : public testing::TestWithParam<int> {};

TEST_P(ShmOfCudaTensors, KeepsTheContract) {
  run_ranks(
      GetParam(),
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Shm});
        EXPECT_EQ(comm.device(), torch::Device(torch::kCUDA, 0));
        check_contract(comm);
      },
      250s);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmOfCudaTensors, testing::Values(1, 2, 4));

// Every survivor ends with an Error that says `text`.
void expect_error(const std::vector<RankOutcome>& ends, const std::vector<int>& ranks, const std::string& text) {
  for (const int rank : ranks) {
    EXPECT_FALSE(ends[rank].out_of_time) << rank;
    EXPECT_NE(ends[rank].output.find(text), std::string::npos) << "rank " << rank << " said: " << ends[rank].output;
  }
}

// Sums until a peer is lost; every sum that is confirmed is right.
void sum_for_ever(Communicator& comm, int killed_rank) {
  for (int step = 0;; ++step) {
    if (comm.world().rank == killed_rank && step == 20) ::raise(SIGKILL);
    const auto tensor = torch::full({1 << 20}, comm.world().rank + 1.0, comm.device());
    comm.all_reduce(tensor).wait();
    comm.confirm();
    ASSERT_EQ(tensor.sum().item<double>(), 6.0 * (1 << 20));
  }
}

TEST(NcclFailure, APeerThatIsKilledEndsTheOthersAndNoSumIsWrong) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        sum_for_ever(comm, 1);
      },
      60s);
  expect_error(ends, {0, 2}, "comm: rank 1 was lost (its process is gone)");
}

TEST(NcclFailure, OverSeveralHostsIsNoticedThroughTheStore) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl}, 3);
        sum_for_ever(comm, 1);
      },
      90s);
  expect_error(ends, {0, 2}, "comm: rank 1 was lost (no sign of life for ");
}

TEST(NcclFailure, RanksThatDisagreeAreToldBothSides) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        comm.all_reduce(torch::ones(1000 + world.rank, comm.device())).wait();
        comm.confirm();
      },
      60s);
  expect_error(ends, {0, 1}, "all_reduce (sum) of 1000 float elements");
  expect_error(ends, {0, 1}, "all_reduce (sum) of 1001 float elements");
}

TEST(NcclFailure, ARankThatStopsEarlyIsNamed) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        for (int step = 0; step < 3 + world.rank; ++step) comm.all_reduce(torch::ones(1000, comm.device())).wait();
        comm.confirm();
      },
      60s);
  expect_error(ends, {1}, "comm: rank 0 was lost (it left after ");
}

TEST(NcclFailure, ATensorOnTheCpuIsRefused) {
  run_ranks(1, [](const World& world) {
    Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
    try {
      comm.all_reduce(torch::ones(3)).wait();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "nccl: a tensor on cpu, but this rank's device is cuda:0");
    }
  });
}

}  // namespace
}  // namespace tandem
