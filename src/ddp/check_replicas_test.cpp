#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "base/error_test.h"
#include "ddp/weighted_sum_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using torch::Tensor;

// The error of the check if each rank has its own `value`; empty if all are equal.
std::string difference(const Tensor& value, Communicator& comm) {
  torch::nn::Module module;
  module.register_buffer("value", value);
  return error_of([&] { check_replicas(module, comm); }).message();
}

TEST(D10, ReplicasThatDriftAreCaught) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    const auto model = weighted_sum({4, 4});
    DistributedDataParallel ddp(model, comm);
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    ddp.forward(world.rank + 1.0).backward();
    optimizer.step();
    check_replicas(*model, comm);

    ddp.module()->zero_grad();
    ddp.forward(world.rank + 1.0).backward();
    if (world.rank == 2) model->weights[1].mutable_grad().mul_(1.001);  // for example clipping on one rank only
    optimizer.step();
    const Error error = error_of([&] { check_replicas(*model, comm); });
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"check_replicas", "parameter p1", "rank 2", "ranks 0, 1"}));
  });
}

TEST(CheckReplicas, NamesTheMinorityAndOfTwoRanksTheSecond) {
  run_ranks(4, [](const World& world) {
    Communicator comm = Communicator::join();
    EXPECT_TRUE(says(difference(torch::full({2}, std::vector{7, 8, 7, 9}[world.rank]), comm),
                     {"buffer value", "ranks 1, 3", "ranks 0, 2"}));
    EXPECT_TRUE(
        says(difference(torch::full({2}, world.rank == 0 ? 5 : 6), comm), {"buffer value", "rank 0", "ranks 1-3"}));
  });
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    EXPECT_TRUE(says(difference(torch::full({2}, world.rank), comm), {"buffer value", "rank 1", "rank 0"}));
  });
}

TEST(CheckReplicas, NamesRanksWithADifferentNumberOfTensors) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    const auto model = weighted_sum(std::vector<std::int64_t>(world.rank == 2 ? 3 : 2, 4));
    EXPECT_TRUE(says(error_of([&] { check_replicas(*model, comm); }).message(),
                     {"check_replicas", "2 tensors on rank 0", "3 on rank 2"}));
  });
}

TEST(CheckReplicas, SeesEveryBitAndNothingElse) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    const bool is_other = world.rank == 1;
    const auto differ = [&](const Tensor& first, const Tensor& second) {
      return !difference(is_other ? second : first, comm).empty();
    };
    const Tensor large = torch::arange(600'000, torch::kFloat);  // three pieces
    EXPECT_FALSE(differ(large, large.clone()));
    EXPECT_TRUE(differ(large, large.flip(0)));
    EXPECT_TRUE(differ(large, large.roll(1 << 18)));
    EXPECT_TRUE(differ(torch::tensor({1.F, 2.F}), torch::tensor({2.F, 1.F})));
    EXPECT_TRUE(differ(torch::tensor({0, 2, 0}), torch::tensor({1, 0, 1})));

    const Tensor zeros = torch::zeros({4}, torch::kDouble);
    EXPECT_TRUE(differ(zeros, -zeros));
    EXPECT_TRUE(differ(zeros, torch::cat({zeros.slice(0, 2), -zeros.slice(0, 2)})));
    EXPECT_TRUE(differ(zeros.to(torch::kHalf), -zeros.to(torch::kHalf)));

    const Tensor nan = torch::full({1}, 0x7FC00000, torch::kInt).view(torch::kFloat);
    EXPECT_FALSE(differ(nan, nan.clone()));
    EXPECT_TRUE(differ(nan, torch::full({1}, 0x7FC00001, torch::kInt).view(torch::kFloat)));

    const Tensor matrix = torch::arange(6).view({2, 3});
    EXPECT_FALSE(differ(matrix, matrix.t().contiguous().t()));
    EXPECT_TRUE(differ(torch::tensor({true, false}), torch::tensor({false, true})));
    EXPECT_FALSE(differ(torch::zeros({}), torch::zeros({})));
    EXPECT_FALSE(differ(torch::zeros({0}), torch::zeros({0})));
  });
}

}  // namespace
}  // namespace tandem
