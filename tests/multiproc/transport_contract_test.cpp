#include "multiproc/transport_contract.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <tandem/error.h>

#include "comm/transport.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

void join_and_check_contract(const CommOptions& options) {
  Communicator comm = Communicator::join(options);
  check_contract(comm);
}

class Shm : public testing::TestWithParam<int> {};

TEST_P(Shm, KeepsTheContract) {
  run_ranks(
      GetParam(), [](const World&) { join_and_check_contract({.transport = TransportKind::Shm}); }, 200s);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Shm, testing::Values(1, 2, 3, 4, 7));

TEST(Solo, KeepsTheContract) { join_and_check_contract({}); }

// A transport that does nothing and reports success.
class Idle : public Transport {
 public:
  std::string_view name() const override { return "idle"; }
  Work all_reduce(torch::Tensor, ReduceOp, double) override { return {}; }
  Work all_gather(torch::Tensor, torch::Tensor) override { return {}; }
  Work reduce_scatter(torch::Tensor, torch::Tensor, ReduceOp) override { return {}; }
  Work broadcast(torch::Tensor, int) override { return {}; }
  Work barrier() override { return {}; }
  torch::Tensor empty(std::int64_t count, const torch::TensorOptions& options) override {
    return torch::empty(count, options);
  }
  torch::Device device() const override { return torch::kCPU; }
  std::unique_ptr<Transport> duplicate() override { return std::make_unique<Idle>(); }
  void set_step(std::int64_t) override {}
  void confirm() override {}
  bool failed() const override { return false; }
};

// The failures of a clause on one of two ranks that do not communicate.
int num_failures(const ContractClause& clause, int rank) {
  const World world{.rank = rank, .size = 2, .local_rank = rank, .local_size = 2};
  Communicator comm = communicator_over(world, torch::kCPU, std::make_unique<Idle>());
  testing::TestPartResultArray results;
  const testing::ScopedFakeTestPartResultReporter reporter(
      testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
  try {
    clause.check(comm);
  } catch (const Error&) {
    return 1;  // for example an invalid shape
  }
  return results.size();
}

TEST(TransportContract, IsBrokenInEveryClauseByATransportThatDoesNothing) {
  for (const ContractClause& clause : transport_contract()) {
    EXPECT_GT(num_failures(clause, 1) + num_failures(clause, 0), 0) << clause.fact;
  }
}

}  // namespace
}  // namespace tandem
