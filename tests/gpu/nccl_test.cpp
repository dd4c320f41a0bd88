#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <tandem/error.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <csignal>
#include <string>

#include "base/error_test.h"
#include "gpu/gpu_test.h"
#include "multiproc/moment.h"
#include "multiproc/run_ranks.h"
#include "multiproc/transport_contract.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

class Nccl : public GpuTest, public testing::WithParamInterface<int> {};

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

class ShmOfCudaTensors : public GpuTest, public testing::WithParamInterface<int> {};

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

class NcclFailure : public GpuTest {};

// Every rank of `ranks` ended with an Error that contains the facts.
void expect_error(const std::vector<RankOutcome>& ends, const std::vector<int>& ranks,
                  std::initializer_list<std::string_view> facts) {
  for (const int rank : ranks) {
    EXPECT_FALSE(ends[rank].out_of_time) << rank;
    EXPECT_TRUE(says(ends[rank].output, facts)) << "rank " << rank;
  }
}

// Sums until a peer is lost; every confirmed sum is correct.
void sum_for_ever(Communicator& comm, int killed_rank) {
  for (int step = 0;; ++step) {
    if (comm.world().rank == killed_rank && step == 20) ::raise(SIGKILL);
    const auto tensor = torch::full({1 << 20}, comm.world().rank + 1.0, comm.device());
    comm.all_reduce(tensor).wait();
    comm.confirm();
    ASSERT_EQ(tensor.sum().item<double>(), 6.0 * (1 << 20));
  }
}

TEST_F(NcclFailure, AKilledPeerEndsTheOthersAndNoSumIsWrong) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        sum_for_ever(comm, 1);
      },
      60s);
  expect_error(ends, {0, 2}, {"rank 1 was lost", "process"});
}

TEST_F(NcclFailure, OverSeveralHostsIsDetectedThroughTheStore) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl}, 3);
        sum_for_ever(comm, 1);
      },
      90s);
  expect_error(ends, {0}, {"rank 1 was lost", "heartbeat"});
  // Rank 0 hosts the store: if it ends first, rank 2 only knows that.
  const bool knows_more = ends[2].output.find("rank 1 was lost") != std::string::npos;
  expect_error(ends, {2}, {knows_more ? "heartbeat" : "rank 0"});
}

TEST_F(NcclFailure, AMismatchNamesBothSides) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        comm.all_reduce(torch::ones(1000 + world.rank, comm.device())).wait();
        comm.confirm();
      },
      60s);
  expect_error(ends, {0, 1}, {"all_reduce (sum) of 1000 float elements"});
  expect_error(ends, {0, 1}, {"all_reduce (sum) of 1001 float elements"});
}

TEST_F(NcclFailure, ARankThatStopsEarlyIsNamed) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        for (int step = 0; step < 3 + world.rank; ++step) comm.all_reduce(torch::ones(1000, comm.device())).wait();
        comm.confirm();
      },
      60s);
  expect_error(ends, {1}, {"rank 0 was lost", "collectives"});
}

TEST_F(NcclFailure, ATensorOnTheCpuIsRejected) {
  run_ranks(1, [](const World& world) {
    Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
    const Error error = error_of([&] { comm.all_reduce(torch::ones(3)).wait(); });
    EXPECT_EQ(error.kind(), ErrorKind::Comm);
    EXPECT_TRUE(says(error.message(), {"nccl", "cpu", "cuda:0"}));
  });
}

TEST_F(NcclFailure, AModuleOnTheCpuIsRejected) {
  run_ranks(2, [](const World& world) {
    Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
    const Error error = error_of([&] { DistributedDataParallel model(torch::nn::Linear(3, 3), comm); });
    EXPECT_TRUE(says(error.message(), {"nccl", "cpu", "cuda:0"}));
    EXPECT_TRUE(says(error.hint(), {"module->to(comm.device())"}));
  });
}

// Every gradient is 2: the mean of rank + 1 over three ranks.
void train_for_ever(Communicator& comm, int killed_rank) {
  torch::nn::Linear layer(torch::nn::LinearOptions(512, 512).bias(false));
  layer->to(comm.device());
  DistributedDataParallel model(layer, comm);
  const auto x = torch::full({1, 512}, comm.world().rank + 1.0, comm.device());
  for (int step = 0;; ++step) {
    if (comm.world().rank == killed_rank && step == 20) {
      print_moment("killed");
      ::raise(SIGKILL);
    }
    layer->zero_grad();
    model(x).sum().backward();
    ASSERT_TRUE((layer->weight.grad() == 2.0).all().item<bool>()) << "a wrong gradient in step " << step;
  }
}

TEST_F(NcclFailure, AKilledPeerEndsTrainingWithinFiveSecondsAndNoGradientIsWrong) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = join_on_one_gpu(world, {.transport = TransportKind::Nccl});
        const Error error = error_of([&] { train_for_ever(comm, 1); });
        print_moment("told");
        std::cout << error.message() << std::endl;
      },
      60s);
  if (ends.empty()) return;
  expect_error(ends, {0, 2}, {"rank 1 was lost", "process"});
  for (const int rank : {0, 2}) {
    EXPECT_TRUE(ends[rank].status.ok()) << ends[rank].output;
    EXPECT_LT(moment_of("told", ends[rank]) - moment_of("killed", ends[1]), 5.0);
  }
}

}  // namespace
}  // namespace tandem
