#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using torch::Tensor;

// Two batch norm layers, the second in a submodule.
class NetworkImpl : public torch::nn::Module {
 public:
  NetworkImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("tail", tail);
    to(torch::kDouble);
  }

  Tensor forward(const Tensor& input) { return tail->forward(norm->forward(conv->forward(input)).relu()); }

  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(2, 4, 3)};
  BatchNorm norm{4};
  torch::nn::Sequential tail{torch::nn::Conv2d(4, 3, 2), BatchNorm(3)};
};
TORCH_MODULE(Network);

Network network() {
  torch::manual_seed(3);
  return Network();
}

// The whole batch, the same on every rank.
struct Batch {
  Tensor input;
  Tensor output_grad;
};

Batch joined_batch(std::int64_t size) {
  torch::manual_seed(4);
  const Tensor input = torch::randn({size, 2, 6, 6}, torch::kDouble) + torch::arange(size).view({-1, 1, 1, 1});
  return {input, torch::randn({size, 3, 3, 3}, torch::kDouble)};
}

double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

// Runs on each rank: its part of the whole batch, compared with the whole batch through the plain network.
void expect_joined(const World& world, const std::vector<std::int64_t>& sizes) {
  const auto batch = joined_batch(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  Network plain = network();
  const Tensor whole = batch.input.clone().requires_grad_();
  const Tensor wanted = plain->forward(whole);
  wanted.backward(batch.output_grad);

  Communicator comm = Communicator::join();
  Network synced = network();
  convert_sync_batchnorm(*synced, comm);
  const auto part = [&](const Tensor& all) { return all.split_with_sizes(sizes)[world.rank]; };
  const Tensor input = part(batch.input).clone().requires_grad_();
  const Tensor output = synced->forward(input);
  output.backward(part(batch.output_grad));

  constexpr double kTolerance = 1e-10;
  EXPECT_LE(distance(output, part(wanted)), kTolerance);
  EXPECT_LE(distance(input.grad(), part(whole.grad())), kTolerance);
  for (const auto& parameter : synced->named_parameters()) {
    const Tensor sum = parameter->grad().clone();
    comm.all_reduce(sum).wait();
    EXPECT_LE(distance(sum, plain->named_parameters()[parameter.key()].grad()), kTolerance) << parameter.key();
  }
  for (const auto& buffer : synced->named_buffers()) {
    EXPECT_LE(distance(*buffer, plain->named_buffers()[buffer.key()]), kTolerance) << buffer.key();
  }
}

TEST(SyncBatchNorm, OfTwoRanksEqualsTheJoinedBatch) {
  run_ranks(2, [](const World& world) { expect_joined(world, {3, 3}); });
}

TEST(SyncBatchNorm, OfFourRanksWithUnequalBatchesEqualsTheJoinedBatch) {
  run_ranks(4, [](const World& world) { expect_joined(world, {1, 4, 0, 2}); });
}

TEST(SyncBatchNorm, OfOneRankEqualsPlainBatchNorm) {
  run_ranks(1, [](const World& world) { expect_joined(world, {3}); });
}

// Rank 0 has the values 1 and 3, rank 1 has 5 and 11: together the mean is 5 and the unbiased variance 56/3.
TEST(D11, RanksWithDifferentDataGetTheRunningStatisticsOfTheJoinedBatch) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    torch::nn::Sequential model(BatchNorm(torch::nn::BatchNormOptions(1).momentum(1)));
    model->to(torch::kDouble);
    convert_sync_batchnorm(*model, comm);
    const Tensor own = world.rank == 0 ? torch::tensor({1.0, 3.0}) : torch::tensor({5.0, 11.0});
    model->forward(own.view({2, 1}).to(torch::kDouble));
    EXPECT_NEAR(model->named_buffers()["0.running_mean"].item<double>(), 5, 1e-12);
    EXPECT_NEAR(model->named_buffers()["0.running_var"].item<double>(), 56.0 / 3, 1e-12);
  });
}

TEST(SyncBatchNorm, OutlivesTheCommunicatorThatItWasMadeFrom) {
  run_ranks(2, [](const World& world) {
    std::optional<Communicator> comm = Communicator::join();
    Network model = network();
    convert_sync_batchnorm(*model, *comm);
    comm.reset();
    const Tensor output = model->forward(torch::full({2, 2, 6, 6}, world.rank + 1.0, torch::kDouble));
    model = nullptr;
    output.sum().backward();
  });
}

TEST(SyncBatchNorm, NeedsTwoValuesOverAllRanks) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    BatchNorm layer(3);
    convert_sync_batchnorm(*layer, comm);
    EXPECT_THROW(layer->forward(torch::ones({world.rank, 3})), Error);
    layer->forward(torch::ones({1, 3}));
  });
}

std::string error_for(torch::nn::Module& module, Communicator& comm) {
  return error_of([&] { convert_sync_batchnorm(module, comm); }).message();
}

TEST(SyncBatchNorm, NamesAPlainLayerOnEveryRankAndChangesNothing) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Network model = network();
    model->tail->push_back(torch::nn::BatchNorm2d(3));
    EXPECT_TRUE(says(error_for(*model, comm), {"tail.2", "BatchNorm2d"}));
    if (world.is_main()) model->norm->forward(torch::randn({2, 4}, torch::kDouble));
  });
}

TEST(SyncBatchNorm, NamesEachKindOfPlainLayer) {
  Communicator comm = Communicator::join();
  torch::nn::BatchNorm1d one(1);
  torch::nn::BatchNorm3d three(1);
  EXPECT_TRUE(says(error_for(*one, comm), {"the module", "BatchNorm1d"}));
  EXPECT_TRUE(says(error_for(*three, comm), {"the module", "BatchNorm3d"}));
}

TEST(SyncBatchNorm, TalksToNobodyForAModuleWithoutBatchNorm) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    torch::nn::Sequential model(torch::nn::Linear(1, 1), torch::nn::InstanceNorm1d(1));
    if (world.is_main()) convert_sync_batchnorm(*model, comm);
    comm.barrier();
  });
}

}  // namespace
}  // namespace tandem
