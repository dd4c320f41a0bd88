#include "ddp/buffer_sync.h"

#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "ddp/weighted_sum_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using torch::Tensor;

TEST(DistributedDataParallel, StartsFromTheParametersAndBuffersOfRank0) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    const double value = world.rank + 1;
    const auto model = weighted_sum({5}, torch::kBFloat16);
    const Tensor large = torch::arange(7'000'000, torch::kFloat);  // more than one piece
    model->add(large * value);
    const Tensor strided = torch::arange(24, torch::kFloat).view({1, 2, 3, 4});
    model->add((strided * value).contiguous(torch::MemoryFormat::ChannelsLast));
    model->add(torch::full({2}, value).set_requires_grad(false));
    const Tensor count = model->register_buffer("count", torch::full({}, 10 + world.rank, torch::kShort));
    const Tensor flags = model->register_buffer("flags", torch::full({3}, world.rank == 0));
    model->register_buffer("nothing", torch::empty({0, 3}));
    {
      const torch::NoGradGuard no_grad;
      model->weights[0].fill_(value);
    }
    const DistributedDataParallel ddp(model, comm);
    EXPECT_TRUE(model->weights[0].equal(torch::ones({5}, torch::kBFloat16)));
    EXPECT_TRUE(model->weights[1].equal(large));
    EXPECT_TRUE(model->weights[2].equal(strided));
    EXPECT_TRUE(model->weights[3].equal(torch::ones({2})));
    EXPECT_EQ(count.item<int>(), 10);
    EXPECT_TRUE(flags.all().item<bool>());
  });
}

struct Statistics : torch::nn::Module {
  Statistics() : weight(register_parameter("weight", torch::ones({2}))) {
    mean = register_buffer("mean", torch::zeros({3}));
    wide = register_buffer("wide", torch::zeros({2}, torch::kDouble));
    count = register_buffer("count", torch::zeros({}, torch::kLong));
  }
  Tensor forward(double x) {
    mean.fill_(x);
    wide.fill_(10 * x);
    count.fill_(static_cast<std::int64_t>(100 * x));
    return (weight * x).sum();
  }

  Tensor weight, mean, wide, count;
};

void expect_buffers(BufferSync how, const std::vector<double>& mean, const std::vector<double>& count) {
  run_ranks(3, [&](const World& world) {
    Communicator comm = Communicator::join();
    const auto model = std::make_shared<Statistics>();
    DistributedDataParallel ddp(model, comm, {.buffers = how});
    for (int step = 0; step < 2; ++step) {
      {
        const NoSync guard = ddp.no_sync();
        ddp.forward(world.rank + 1.0).backward();
        EXPECT_EQ(model->count.item<double>(), 100 * (world.rank + 1));
      }
      ddp.forward(world.rank + 1.0).backward();
      EXPECT_TRUE(model->mean.equal(torch::full({3}, mean[world.rank])));
      EXPECT_TRUE(model->wide.equal(torch::full({2}, 10 * mean[world.rank], torch::kDouble)));
      EXPECT_EQ(model->count.item<double>(), count[world.rank]);
    }
  });
}

TEST(Buffers, AreThoseOfRank0AfterASynchronizedPass) {
  expect_buffers(BufferSync::Broadcast, {1, 1, 1}, {100, 100, 100});
}

TEST(Buffers, AreAveragedOnRequestIfFloatingPoint) { expect_buffers(BufferSync::Average, {2, 2, 2}, {100, 100, 100}); }

TEST(Buffers, StayLocalOnRequest) { expect_buffers(BufferSync::Off, {1, 2, 3}, {100, 200, 300}); }

}  // namespace
}  // namespace tandem
