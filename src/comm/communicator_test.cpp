#include <gtest/gtest.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <torch/types.h>

#include <sys/resource.h>

#include <csignal>
#include <initializer_list>
#include <string_view>
#include <thread>

#include "base/error_test.h"
#include "comm/choose_transport.h"
#include "comm/transport.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using torch::Tensor;

using Facts = std::initializer_list<std::string_view>;

// The call throws an Error of this kind with a hint, whose message contains the facts in this order.
template <class Call>
testing::AssertionResult throws(ErrorKind kind, Facts facts, const Call& call) {
  const Error error = error_of(call);
  if (error.kind() != kind || error.hint().empty())
    return testing::AssertionFailure() << kind_name(error.kind()) << ": " << error.what();
  return says(error.message(), facts);
}

// Every rank of `ranks` ended by itself, with an Error that contains the facts.
void expect_error(const std::vector<RankOutcome>& ends, const std::vector<int>& ranks, Facts facts) {
  for (const int rank : ranks) {
    EXPECT_FALSE(ends[rank].out_of_time) << rank;
    EXPECT_FALSE(ends[rank].status.ok()) << rank;
    EXPECT_TRUE(says(ends[rank].output, facts)) << "rank " << rank;
    EXPECT_TRUE(says(ends[rank].output, {"hint: "})) << "rank " << rank;
  }
}

TEST(Communicator, RejectsWhatCannotBeReduced) {
  Communicator comm = Communicator::join();
  const auto rejects = [](Facts facts, const auto& call) { return throws(ErrorKind::Config, facts, call); };
  EXPECT_TRUE(rejects({"all_reduce", "bool"}, [&] { comm.all_reduce(torch::ones(3, torch::kBool)).wait(); }));
  EXPECT_TRUE(rejects({"all_reduce", "divided", "Int [3]"},
                      [&] { comm.all_reduce(torch::ones(3, torch::kInt), ReduceOp::Sum, 2).wait(); }));
  EXPECT_TRUE(rejects({"all_reduce", "divided", "Float [3]"},
                      [&] { comm.all_reduce(torch::ones(3), ReduceOp::Max, 2).wait(); }));
  EXPECT_TRUE(
      rejects({"all_reduce", "ComplexFloat"}, [&] { comm.all_reduce(torch::ones(3, torch::kComplexFloat)).wait(); }));
  EXPECT_TRUE(rejects({"all_reduce", "undefined"}, [&] { comm.all_reduce(Tensor()).wait(); }));
  EXPECT_TRUE(rejects({"all_reduce", "sparse"}, [&] { comm.all_reduce(torch::eye(2).to_sparse()).wait(); }));
  EXPECT_TRUE(rejects({"broadcast", "1 of 1"}, [&] { comm.broadcast(torch::ones(3), 1).wait(); }));
  EXPECT_TRUE(rejects({"all_gather", "Float [4] on cpu", "1 times Float [3] on cpu"},
                      [&] { comm.all_gather(torch::ones(3), torch::ones(4)).wait(); }));
  EXPECT_TRUE(rejects({"reduce_scatter", "Float [3] on cpu", "1 times Int [3] on cpu"},
                      [&] { comm.reduce_scatter(torch::ones(3), torch::ones(3, torch::kInt)).wait(); }));
  EXPECT_TRUE(
      rejects({"all_reduce", "Float [3] share memory"}, [&] { comm.all_reduce(torch::ones(1).expand({3})).wait(); }));
  EXPECT_TRUE(rejects({"all_gather_uneven", "0 dimensions"}, [&] { comm.all_gather_uneven(torch::ones({})); }));
}

Topology topology_of(std::vector<std::string> devices, bool has_nccl, int num_nodes = 1) {
  const auto size = static_cast<int>(devices.size());
  return {.world = {.size = size, .num_nodes = num_nodes}, .devices = std::move(devices), .has_nccl = has_nccl};
}

TEST(Transport, IsTheBestAvailableOne) {
  const auto chosen = [](const Topology& topology) { return choose_transport(TransportKind::Auto, topology); };
  EXPECT_EQ(chosen(topology_of({"cpu"}, true)).kind, TransportKind::Solo);
  EXPECT_EQ(chosen(topology_of({"cpu", "cpu"}, true)).kind, TransportKind::Shm);
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:1 of host 0"}, true)).kind, TransportKind::Nccl);
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:0 of host 1"}, true, 2)).kind, TransportKind::Nccl);
  const auto shared = chosen(topology_of({"cuda:0 of host 0", "cuda:0 of host 0"}, true));
  EXPECT_EQ(shared.kind, TransportKind::Shm);
  EXPECT_TRUE(says(shared.why, {"2 ranks", "share GPUs"}));
  EXPECT_EQ(chosen(topology_of({"cuda:0 of host 0", "cuda:1 of host 0"}, false)).kind, TransportKind::Shm);
  EXPECT_TRUE(throws(ErrorKind::Config, {"shm", "one host", "2 hosts"}, [&] {
    chosen(topology_of({"cpu", "cpu"}, true, 2));
  }));
}

TEST(Transport, RequestedByNameIsThatOneOrAnError) {
  const auto rejects = [](Facts facts, TransportKind kind, const Topology& topology) {
    return throws(ErrorKind::Config, facts, [&] { choose_transport(kind, topology); });
  };
  EXPECT_EQ(choose_transport(TransportKind::Shm, topology_of({"cpu"}, false)).kind, TransportKind::Shm);
  EXPECT_EQ(choose_transport(TransportKind::Nccl, topology_of({"cuda:0 of host 0"}, true)).kind, TransportKind::Nccl);
  EXPECT_TRUE(rejects({"nccl", "not available"}, TransportKind::Nccl, topology_of({"cuda:0 of host 0"}, false)));
  EXPECT_TRUE(rejects({"nccl", "CUDA", "cpu"}, TransportKind::Nccl, topology_of({"cpu"}, true)));
  EXPECT_TRUE(rejects({"nccl", "GPU per rank", "cuda:0 of host 0, cuda:0 of host 0"}, TransportKind::Nccl,
                      topology_of({"cuda:0 of host 0", "cuda:0 of host 0"}, true)));
  EXPECT_TRUE(rejects({"solo", "one rank", "2"}, TransportKind::Solo, topology_of({"cpu", "cpu"}, true)));
}

TEST(Communicator, CountsCollectivesAndBytes) {
  Communicator comm = Communicator::join();
  comm.all_reduce(torch::ones(10)).wait();
  comm.broadcast(torch::ones(5, torch::kDouble)).wait();
  comm.barrier();
  EXPECT_EQ(comm.stats().collectives, 3);
  EXPECT_EQ(comm.stats().bytes, 80);
}

TEST(Communicator, BelongsToOneThread) {
  Communicator comm = Communicator::join();
  std::thread([&] {
    EXPECT_TRUE(throws(ErrorKind::Config, {"barrier", "second thread"}, [&] { comm.barrier(); }));
  }).join();
  comm.barrier();
}

TEST(Communicator, MayBeUsedInABackwardPass) {
  Communicator comm = Communicator::join();
  Tensor leaf = torch::ones(3).requires_grad_();
  leaf.register_hook([&](const Tensor& grad) { comm.all_reduce(grad.clone()).wait(); });
  leaf.sum().backward();
  EXPECT_EQ(comm.stats().collectives, 1);
}

TEST(Communicator, ReportsItsTransportAndWhy) {
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
    EXPECT_TRUE(throws(ErrorKind::Config, {"join", "already"}, [] { Communicator::join(); }));
  });
}

TEST(Communicator, RejectsImpossibleSizes) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    EXPECT_TRUE(throws(ErrorKind::Config, {"empty", "4611686018427387904 elements"},
                       [&] { comm.empty(std::int64_t{1} << 62, torch::kFloat); }));
    EXPECT_TRUE(throws(ErrorKind::Config, {"empty", "-1 elements"}, [&] { comm.empty(-1, torch::kFloat); }));
  });
}

// The second thread gets an Error; the state stays valid.
TEST(Communicator, RejectsOneOfTwoThreadsThatWaitAtOnce) {
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

TEST(Communicator, SplitsLargeTensorsIntoPieces) {
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
TEST(Communicator, Accumulates16BitTypesInFloat) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    const Tensor tensor = torch::full({5}, world.is_main() ? 256 : 1, torch::kBFloat16);
    comm.all_reduce(tensor).wait();
    EXPECT_TRUE(tensor.eq(258).all().item<bool>());
  });
}

// (1e8 + 1) + (-1e8 + 1) is 0 in float; from left to right it would be 1.
TEST(Communicator, SumsAlongATreeOverTheRanks) {
  run_ranks(4, [](const World& world) {
    Communicator comm = Communicator::join();
    const std::vector<float> values = {1e8F, 1, -1e8F, 1};
    const Tensor tensor = torch::full({33}, values[world.rank]);
    comm.all_reduce(tensor).wait();
    EXPECT_TRUE(tensor.eq(0).all().item<bool>());
  });
}

TEST(Communicator, AndItsDuplicateAreOrderedIndependently) {
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

TEST(Communicator, ReportsDifferentShapesOnEveryRank) {
  const auto ends = run_ranks_to_end(
      2,
      [](const World& world) {
        Communicator comm = Communicator::join();
        comm.all_gather_uneven(world.is_main() ? torch::ones({2, 6}) : torch::ones({2, 3, 2}));
      },
      60s);
  expect_error(ends, {0}, {"all_gather_uneven", "Float [2, 6]", "rank 1"});
  expect_error(ends, {1}, {"all_gather_uneven", "Float [2, 3, 2]", "rank 0"});
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
  expect_error(ends, {0, 1, 2}, {"do not agree on collective"});
  expect_error(ends, {0, 1, 2}, {"all_reduce (sum) of 5 float elements"});
  expect_error(ends, {0, 1, 2}, {"broadcast of 5 long elements from rank 1"});
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
  expect_error(ends, {0, 2}, {"rank 1 was lost", "after 4 collectives", "Tail::Pad"});
}

TEST(Communicator, NamesARankThatExitsInTheMiddle) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join();
        comm.all_reduce(torch::ones(8)).wait();
        if (world.rank == 1) ::_exit(0);
        comm.all_reduce(torch::ones(8)).wait();
      },
      60s);
  expect_error(ends, {0, 2}, {"rank 1 was lost", "process"});
}

// It has no file descriptor left for the new shared memory.
TEST(Communicator, NamesARankThatFailsInDuplicate) {
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
  expect_error(ends, {1}, {"cannot be opened"});
  expect_error(ends, {0, 2}, {"rank 1 was lost"});
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
  expect_error(ends, {0, 1, 3}, {"rank 2 was lost", "process"});
}

TEST(Communicator, NamesTheRanksThatTimeOut) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join({.timeout = 300ms});
        if (world.rank != 0) ::raise(SIGSTOP);
        comm.all_reduce(torch::ones(8)).wait();
      },
      5s);
  expect_error(ends, {0}, {"300ms", "ranks 1, 2", "all_reduce (sum) of 8 float elements", "tandem stack", "--timeout"});
}

}  // namespace
}  // namespace tandem
