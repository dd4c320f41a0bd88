#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <torch/torch.h>

#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "base/error_test.h"
#include "comm/choose_transport.h"
#include "comm/transport.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using torch::Tensor;

// What a call throws.
template <class Call>
std::string message_of(const Call& call) {
  const Error error = error_of(call);
  EXPECT_NE(error.hint(), "");
  return error.message();
}

// Every rank that is to end by itself said `text` and ended as an Error does.
void expect_error(const std::vector<RankOutcome>& ends, const std::vector<int>& ranks, const std::string& text) {
  for (const int rank : ranks) {
    EXPECT_FALSE(ends[rank].out_of_time) << rank;
    EXPECT_FALSE(ends[rank].status.ok()) << rank;
    EXPECT_NE(ends[rank].output.find(text), std::string::npos) << "rank " << rank << " said: " << ends[rank].output;
    EXPECT_NE(ends[rank].output.find("hint: "), std::string::npos) << rank;
  }
}

TEST(Communicator, RefusesWhatCannotBeReduced) {
  Communicator comm = Communicator::join();
  EXPECT_EQ(message_of([&] { comm.all_reduce(torch::ones(3, torch::kBool)).wait(); }),
            "all_reduce: a sum of bool tensors");
  EXPECT_EQ(message_of([&] { comm.all_reduce(torch::ones(3, torch::kInt), ReduceOp::Sum, 2).wait(); }),
            "all_reduce: only sums of floating-point tensors can be divided, not Int [3]");
  EXPECT_EQ(message_of([&] { comm.all_reduce(torch::ones(3), ReduceOp::Max, 2).wait(); }),
            "all_reduce: only sums of floating-point tensors can be divided, not Float [3]");
  EXPECT_EQ(message_of([&] { comm.all_reduce(torch::ones(3, torch::kComplexFloat)).wait(); }),
            "all_reduce: tensors of type ComplexFloat do not travel");
  EXPECT_EQ(message_of([&] { comm.all_reduce(Tensor()).wait(); }), "all_reduce: the tensor is undefined");
  EXPECT_EQ(message_of([&] { comm.all_reduce(torch::eye(2).to_sparse()).wait(); }), "all_reduce: a sparse tensor");
  EXPECT_EQ(message_of([&] { comm.broadcast(torch::ones(3), 1).wait(); }), "broadcast: from rank 1 of 1");
  EXPECT_EQ(message_of([&] { comm.all_gather(torch::ones(3), torch::ones(4)).wait(); }),
            "all_gather: Float [4] on cpu does not hold 1 times Float [3] on cpu");
  EXPECT_EQ(message_of([&] { comm.reduce_scatter(torch::ones(3), torch::ones(3, torch::kInt)).wait(); }),
            "reduce_scatter: Float [3] on cpu does not hold 1 times Int [3] on cpu");
  EXPECT_EQ(message_of([&] { comm.all_reduce(torch::ones(1).expand({3})).wait(); }),
            "all_reduce: elements of the tensor Float [3] share memory");
  EXPECT_EQ(message_of([&] { comm.all_gather_uneven(torch::ones({})); }),
            "all_gather_uneven: a tensor with 0 dimensions");
}

Topology topology_of(std::vector<std::string> devices, bool has_nccl, int num_nodes = 1) {
  const auto size = static_cast<int>(devices.size());
  return {.world = {.size = size, .num_nodes = num_nodes}, .devices = std::move(devices), .has_nccl = has_nccl};
}

TEST(Transport, IsTheBestThereIs) {
  const auto chosen = [](const Topology& topology) { return choose_transport(TransportKind::Auto, topology); };
  EXPECT_EQ(chosen(topology_of({"cpu"}, true)).kind, TransportKind::Solo);
  EXPECT_EQ(chosen(topology_of({"cpu", "cpu"}, true)).kind, TransportKind::Shm);
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:1 of host 0"}, true)).kind, TransportKind::Nccl);
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:0 of host 1"}, true, 2)).kind, TransportKind::Nccl);
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:0 of host 0"}, true)).why,
            "2 ranks that share GPUs, on one host");
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:1 of host 0"}, false)).kind, TransportKind::Shm);
  EXPECT_EQ(message_of([&] {
              chosen(topology_of({"cpu", "cpu"}, true, 2));
            }),
            "transport: shm joins the ranks of one host, but this run has 2");
}

TEST(Transport, AskedForByNameIsThatOneOrAnError) {
  const auto message = [](TransportKind kind, const Topology& topology) {
    return message_of([&] { choose_transport(kind, topology); });
  };
  EXPECT_EQ(choose_transport(TransportKind::Shm, topology_of({"cpu"}, false)).kind, TransportKind::Shm);
  EXPECT_EQ(choose_transport(TransportKind::Nccl, topology_of({"cuda:0 of host 0"}, true)).kind, TransportKind::Nccl);
  EXPECT_EQ(message(TransportKind::Nccl, topology_of({"cuda:0 of host 0"}, false)), "transport: nccl is not there");
  EXPECT_EQ(message(TransportKind::Nccl, topology_of({"cpu"}, true)),
            "transport: nccl moves CUDA tensors, but the ranks run on cpu");
  EXPECT_EQ(message(TransportKind::Nccl, topology_of({"cuda:0 of host 0", "cuda:0 of host 0"}, true)),
            "transport: nccl wants a GPU for each rank, but the ranks run on cuda:0 of host 0, cuda:0 of host 0");
  EXPECT_EQ(message(TransportKind::Solo, topology_of({"cpu", "cpu"}, true)),
            "transport: solo is for one rank, but this run has 2");
}

TEST(Communicator, CountsWhatItDoes) {
  Communicator comm = Communicator::join();
  comm.all_reduce(torch::ones(10)).wait();
  comm.broadcast(torch::ones(5, torch::kDouble)).wait();
  comm.barrier();
  EXPECT_EQ(comm.stats().collectives, 3);
  EXPECT_EQ(comm.stats().bytes, 80);
}

TEST(Communicator, BelongsToOneThread) {
  Communicator comm = Communicator::join();
  std::string message;
  std::thread([&] { message = message_of([&] { comm.barrier(); }); }).join();
  EXPECT_EQ(message, "barrier: called from a second thread");
  comm.barrier();
}

TEST(Communicator, MayBeUsedInABackwardPass) {
  Communicator comm = Communicator::join();
  Tensor leaf = torch::ones(3).requires_grad_();
  leaf.register_hook([&](const Tensor& grad) { comm.all_reduce(grad.clone()).wait(); });
  leaf.sum().backward();
  EXPECT_EQ(comm.stats().collectives, 1);
}

TEST(Communicator, SaysWhatTravelsHow) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    EXPECT_EQ(comm.transport_name(), "shm");
    EXPECT_EQ(comm.why(), "2 CPU ranks on one host");
    EXPECT_EQ(comm.device(), torch::kCPU);
  });
}

TEST(Communicator, IsJoinedOnce) {
  run_ranks(2, [](const World&) {
    { Communicator first = Communicator::join(); }
    EXPECT_EQ(message_of([] { Communicator::join(); }), "join: this process has joined the other ranks before");
  });
}

TEST(Communicator, HasNoMemoryForNonsense) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    EXPECT_EQ(message_of([&] { comm.empty(std::int64_t{1} << 62, torch::kFloat); }),
              "empty: a tensor of 4611686018427387904 elements");
    EXPECT_EQ(message_of([&] { comm.empty(-1, torch::kFloat); }), "empty: a tensor of -1 elements");
  });
}

// Whichever thread comes second is told; nothing is damaged.
TEST(Communicator, ToldToWaitByTwoThreadsAtOnceRefusesOne) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    const Tensor tensor = torch::ones(8);
    if (world.is_main()) {
      Work mine = comm.all_reduce(tensor);
      Work late = comm.all_reduce(torch::ones(8));
      std::string other_said;
      std::thread other([&] { other_said = error_of([&] { late.wait(); }).message(); });
      const std::string said = error_of([&] { mine.wait(); }).message();
      other.join();
      EXPECT_TRUE(said.empty() || other_said.empty()) << said << " / " << other_said;
    } else {
      comm.all_reduce(tensor).wait();
      comm.all_reduce(torch::ones(8)).wait();
    }
  });
}

TEST(Communicator, TakesTensorsOfAnySizeInPieces) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    const std::int64_t count = (std::int64_t{65} << 20) / 4 + 3;  // 65 MiB, and a little
    const Tensor tensor = torch::arange(count).remainder(100).to(torch::kFloat) * (world.rank + 1);
    comm.all_reduce(tensor).wait();
    EXPECT_TRUE(tensor.equal(torch::arange(count).remainder(100).to(torch::kFloat) * 3));
    const Tensor all = torch::empty({2, count});
    comm.all_gather(tensor + world.rank, all).wait();
    EXPECT_TRUE(all[0].equal(tensor));
    EXPECT_TRUE(all[1].equal(tensor + 1));
  });
}

// Summed as bfloat16, 256 + 1 would stay 256.
TEST(Communicator, WidensSixteenBitTypesWhileItSums) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    const Tensor tensor = torch::full({5}, world.is_main() ? 256 : 1, torch::kBFloat16);
    comm.all_reduce(tensor).wait();
    EXPECT_TRUE(tensor.eq(258).all().item<bool>());
  });
}

// (1e8 + 1) + (-1e8 + 1) is 0 in float, where one after the other would give 1.
TEST(Communicator, SumsAlongATreeOverTheRanks) {
  run_ranks(4, [](const World& world) {
    Communicator comm = Communicator::join();
    const std::vector<float> values = {1e8F, 1, -1e8F, 1};
    const Tensor tensor = torch::full({33}, values[world.rank]);
    comm.all_reduce(tensor).wait();
    EXPECT_TRUE(tensor.eq(0).all().item<bool>());
  });
}

TEST(Communicator, AndItsDuplicateMayBeUsedInDifferentOrders) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Communicator other = comm.duplicate();
    const Tensor first = torch::full({4}, world.rank + 1);
    const Tensor second = torch::full({5}, world.rank + 1);
    std::vector<Work> works;
    if (world.is_main()) works.push_back(comm.all_reduce(first));
    works.push_back(other.all_reduce(second));
    if (!world.is_main()) works.push_back(comm.all_reduce(first));
    for (Work& work : works) work.wait();
    EXPECT_TRUE(first.eq(3).all().item<bool>());
    EXPECT_TRUE(second.eq(3).all().item<bool>());
  });
}

TEST(Communicator, ToldOfOtherShapesSaysSoOnEveryRank) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        Communicator comm = Communicator::join();
        comm.all_gather_uneven(world.is_main() ? torch::ones({2, 6}) : torch::ones({2, 3, 2}));
      },
      60s);
  expect_error(ends, {0}, "all_gather_uneven: Float [2, 6] here, but a tensor of another shape on rank 1");
  expect_error(ends, {1}, "all_gather_uneven: Float [2, 3, 2] here, but a tensor of another shape on rank 0");
}

TEST(Communicator, NamesBothSidesWhenRanksDisagree) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join();
        comm.all_reduce(torch::ones(8)).wait();
        if (world.rank == 2) {
          comm.broadcast(torch::ones(5, torch::kLong), 1).wait();
        } else {
          comm.all_reduce(torch::ones(5)).wait();
        }
      },
      60s);
  expect_error(ends, {0, 1, 2}, "comm: the ranks do not agree on collective ");
  expect_error(ends, {0, 1, 2}, "all_reduce (sum) of 5 float elements");
  expect_error(ends, {0, 1, 2}, "broadcast of 5 long elements from rank 1");
}

TEST(Communicator, NamesARankThatEndsEarly) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join();
        for (int step = 0; step < (world.rank == 1 ? 3 : 5); ++step) comm.all_reduce(torch::ones(8)).wait();
      },
      60s);
  EXPECT_TRUE(ends[1].status.ok());
  expect_error(ends, {0, 2}, "comm: rank 1 was lost (it left after 4 collectives)");
  expect_error(ends, {0, 2}, "even_batches");
}

TEST(Communicator, NamesARankThatExitsInMidRun) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join();
        comm.all_reduce(torch::ones(8)).wait();
        if (world.rank == 1) ::_exit(0);
        comm.all_reduce(torch::ones(8)).wait();
      },
      60s);
  expect_error(ends, {0, 2}, "comm: rank 1 was lost (its process is gone)");
}

// It has no descriptor left to open the new memory with.
TEST(Communicator, NamesARankThatFailsOnItsWayToADuplicate) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join();
        if (world.rank == 1) {
          const rlimit none{.rlim_cur = 0, .rlim_max = 0};
          ::setrlimit(RLIMIT_NOFILE, &none);
        }
        comm.duplicate();
      },
      60s);
  expect_error(ends, {1}, "cannot be opened");
  expect_error(ends, {0, 2}, "comm: rank 1 was lost");
}

TEST(Communicator, NamesARankThatIsKilled) {
  const auto ends = run_ranks_to_end(
      4,
      [](const World& world) {
        Communicator comm = Communicator::join();
        for (int step = 0; step < 100'000'000; ++step) {
          if (world.rank == 2 && step == 100) ::raise(SIGKILL);
          comm.all_reduce(torch::ones(8)).wait();
        }
      },
      60s);
  expect_error(ends, {0, 1, 3}, "comm: rank 2 was lost (its process is gone)");
}

TEST(Communicator, NamesTheRanksThatDoNotComeInTime) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join({.timeout = 300ms});
        if (world.rank != 0) ::raise(SIGSTOP);
        comm.all_reduce(torch::ones(8)).wait();
      },
      5s);
  expect_error(ends, {0}, "comm: ranks 1, 2 did not come to all_reduce (sum) of 8 float elements");
}

}  // namespace
}  // namespace tandem
