#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <array>

#include "comm/choose_transport.h"
#include "comm/store.h"
#include "multiproc/fault_transport.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;
constexpr int kSteps = 3;

// Creates and trains a model; every gradient is correct.
void train_until_fault(Communicator& comm) {
  torch::nn::Linear layer(torch::nn::LinearOptions(4, 1).bias(false));
  DistributedDataParallel model(layer, comm);
  constexpr std::array kShares = {1, 2, 6};  // the mean, 3, is the share of no rank
  for (int step = 0; step < kSteps; ++step) {
    layer->zero_grad();
    const double x = kShares[comm.world().rank] * (step + 1);
    model(torch::full({1, 4}, x)).sum().backward();
    ASSERT_TRUE(layer->weight.grad().eq(3.0 * (step + 1)).all().item<bool>()) << layer->weight.grad();
  }
}

// Trains with a fault on rank 1.
std::vector<RankOutcome> train_with(Fault fault) {
  return run_ranks_to_end(
      kRanks,
      [&](const World& world) {
        Store store = Store::join();
        auto chosen = make_transport({}, store);
        const Fault mine = world.rank == 1 ? fault : Fault{};
        Communicator comm = communicator_over(world, chosen.device,
                                              std::make_unique<FaultTransport>(std::move(chosen.transport), mine));
        try {
          train_until_fault(comm);
        } catch (const Error&) {
          store.abandon();
          throw;
        }
      },
      60s);
}

// Of `train`: two to compare models, one for the parameters of rank 0, three passes, and the bucket order.
constexpr int kCollectives = 7;

TEST(Fault, ADelayChangesNothing) {
  for (int at = 0; at < kCollectives; ++at) {
    EXPECT_EQ(failures(train_with({.kind = Fault::Kind::Delay, .at = at})), "") << at;
  }
}

// Rank 1 fails by the fault itself; the others must get an Error of kind Comm.
void expect_that_all_fail(Fault::Kind kind) {
  for (int at = 0; at < kCollectives; ++at) {
    const auto ends = train_with({.kind = kind, .at = at});
    if (ends.empty()) continue;  // this process is a rank of a later round
    EXPECT_FALSE(ends[1].status.ok()) << at;
    for (const int rank : {0, 2}) {
      EXPECT_FALSE(ends[rank].out_of_time) << at;
      EXPECT_EQ(ends[rank].status.text(), "exit code 6") << at << ends[rank].output;
    }
  }
}

TEST(Fault, ASkippedCollectiveIsAnErrorOnTheOtherRanks) { expect_that_all_fail(Fault::Kind::Drop); }

TEST(Fault, AnExceptionIsAnErrorOnAllRanks) { expect_that_all_fail(Fault::Kind::Throw); }

}  // namespace
}  // namespace tandem
