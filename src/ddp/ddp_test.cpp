#include <gtest/gtest.h>
#include <tandem/ddp.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "ddp/weighted_sum_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using torch::Tensor;

TEST(DistributedDataParallel, GivesEveryRankTheMeanGradient) {
  for (const int size : {2, 3, 4}) {
    run_ranks(size, [](const World& world) {
      Communicator comm = Communicator::join();
      Ddp ddp(weighted_sum({3, 100, 1000}), comm);
      const double mean = std::vector{1.5, 2.0, 2.5}[world.size - 2];
      for (int step = 0; step < 3; ++step) {
        ddp.module()->zero_grad();
        ddp.forward(world.rank + 1.0).backward();
        EXPECT_EQ(ddp.module()->grad(0), mean);
        EXPECT_EQ(ddp.module()->grad(1), 2 * mean);
        EXPECT_EQ(ddp.module()->grad(2), 3 * mean);
      }
    });
  }
}

TEST(DistributedDataParallel, TakesASharedPointerToAModuleAndItsArguments) {
  Communicator comm = Communicator::join();
  DistributedDataParallel ddp(std::make_shared<torch::nn::LinearImpl>(2, 1), comm);
  ddp(torch::ones({1, 2})).sum().backward();
  EXPECT_TRUE(ddp.module()->weight.grad().equal(torch::ones({1, 2})));
  EXPECT_EQ(ddp.parameters().size(), 2U);
}

TEST(D6, KMicroBatchesSynchronizeOncePerStep) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({8}), comm);
    for (int step = 0; step < 3; ++step) {
      ddp.module()->zero_grad();
      const std::int64_t before = comm.stats().collectives;
      for (int micro = 0; micro < 3; ++micro) {
        const NoSync guard = ddp.no_sync();
        ddp.forward(world.rank + 1.0).backward();
        EXPECT_EQ(ddp.module()->grad(0), (micro + 1.0) * (world.rank + 1));
      }
      EXPECT_EQ(comm.stats().collectives, before);
      ddp.forward(world.rank + 1.0).backward();
      EXPECT_EQ(comm.stats().collectives, before + (step == 0 ? 2 : 1));  // the first also broadcasts the bucket order
      EXPECT_EQ(ddp.module()->grad(0), 6);
    }
    EXPECT_EQ(ddp.stats().passes, 3);
  });
}

TEST(DistributedDataParallel, AccumulatesOverSynchronizedPassesWithoutZeroGrad) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({8, 8}), comm);
    for (int pass = 1; pass <= 4; ++pass) {
      ddp.forward(world.rank + 1.0).backward();
      EXPECT_EQ(ddp.module()->grad(0), 2 * pass);
      EXPECT_EQ(ddp.module()->grad(1), 4 * pass);
    }
  });
}

TEST(DistributedDataParallel, KeepsGradientsInTheirBucketWhenTheyAreZeroedInPlace) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({8, 40}), comm);
    torch::optim::SGD optimizer(ddp.parameters(), 0.1);
    std::vector<const void*> places;
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad(/*set_to_none=*/false);
      ddp.forward(world.rank + 1.0).backward();
      EXPECT_EQ(ddp.module()->grad(0), 1.5);
      EXPECT_EQ(ddp.module()->grad(1), 3);
      places.push_back(ddp.module()->weights[1].grad().const_data_ptr());
    }
    EXPECT_EQ(places[1], places[2]);
    EXPECT_EQ(places[2], places[3]);
  });
}

TEST(DistributedDataParallel, ReducesGradientsAccumulatedUnderNoSyncOnly) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({4, 4}), comm);
    const double x = world.rank + 1;
    for (int step = 0; step < 3; ++step) {
      ddp.module()->zero_grad(/*set_to_none=*/step == 2);
      {
        const NoSync guard = ddp.no_sync();
        ddp.forward(x, std::vector<std::size_t>{0, 1}).backward();
      }
      ddp.forward(x, std::vector<std::size_t>{0}).backward();
      EXPECT_EQ(ddp.module()->grad(0), 3);
      EXPECT_EQ(ddp.module()->grad(1), 3);
    }
  });
}

TEST(DistributedDataParallel, ReducesATiedParameterOnce) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    const auto model = weighted_sum({16});
    model->add(model->weights[0]);
    Ddp ddp(model, comm);
    ddp.forward(world.rank + 1.0).backward();
    EXPECT_EQ(model->grad(0), 4.5);  // (1 + 2) * 1.5
    EXPECT_EQ(ddp.stats().bytes, 64 + 4);
  });
}

TEST(DistributedDataParallel, PassesATiedParameterToTheOptimizerOnce) {
  Communicator comm = Communicator::join();
  const auto model = weighted_sum({1});
  model->add(model->weights[0]);
  Ddp ddp(model, comm);
  torch::optim::SGD optimizer(ddp.parameters(), 1);
  ddp.forward(1.0).backward();
  optimizer.step();
  EXPECT_EQ(model->weights[0].item<double>(), -3);  // 1 + 2
}

TEST(DistributedDataParallel, LeavesFrozenParametersOut) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    const auto model = weighted_sum({16, 1000});
    model->weights[1].set_requires_grad(false);
    Ddp ddp(model, comm);
    ddp.forward(world.rank + 1.0).backward();
    EXPECT_EQ(model->grad(0), 1.5);
    EXPECT_FALSE(model->weights[1].grad().defined());
    EXPECT_EQ(ddp.stats().bytes, 64 + 4);
  });
}

// Records warnings.
class Warnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }

  std::vector<std::string> texts;
};

TEST(DistributedDataParallel, CountsAParameterThatOneRankDoesNotUseAsZeroThereAndWarnsOnce) {
  run_ranks(2, [](const World& world) {
    Warnings warnings;
    const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({4, 4, 4}), comm, kOneBucketEach);
    using Used = std::vector<std::size_t>;
    for (int step = 0; step < 3; ++step) {
      ddp.module()->zero_grad();
      ddp.forward(world.rank + 1.0, world.rank == 0 ? Used{0, 1, 2} : Used{1}).backward();
      EXPECT_EQ(ddp.module()->grad(0), 0.5);
      EXPECT_EQ(ddp.module()->grad(1), 3);
      EXPECT_EQ(ddp.module()->grad(2), 1.5);
    }
    ddp.module()->zero_grad();
    ddp.forward(world.rank + 1.0, world.rank == 0 ? Used{0, 1, 2} : Used{1, 2}).backward();
    EXPECT_EQ(ddp.module()->grad(0), 0.5);
    if (world.rank == 0) {
      EXPECT_TRUE(warnings.texts.empty());
    } else {
      ASSERT_EQ(warnings.texts.size(), 2U);
      EXPECT_TRUE(says(warnings.texts[0], {"DistributedDataParallel", "rank 1", ": p0, p2"}));
      EXPECT_TRUE(warnings.texts[1].ends_with(": p0"));
    }
  });
}

TEST(DistributedDataParallel, LeavesTheGradientOfAParameterThatNoRankUsesUntouched) {
  run_ranks(3, [](const World& world) {
    Warnings warnings;
    const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({4, 4}), comm);
    const std::vector<std::size_t> first = {0};
    for (int step = 0; step < 2; ++step) {
      ddp.forward(world.rank + 1.0, first).backward();
      EXPECT_FALSE(ddp.module()->weights[1].grad().defined());
    }
    ddp.module()->zero_grad();
    ddp.forward(0.1).backward();
    const Tensor grad = ddp.module()->weights[1].grad();
    grad.fill_(0.1F * static_cast<float>(world.rank + 1));  // a reduction over three ranks would change it
    for (int step = 0; step < 2; ++step) {
      ddp.forward(world.rank + 1.0, first).backward();
      EXPECT_EQ(ddp.module()->grad(1), 0.1F * static_cast<float>(world.rank + 1));
    }
    EXPECT_TRUE(warnings.texts.empty());
  });
}

TEST(DistributedDataParallel, AccumulatesIntoAGradientThatOnlyOtherRanksUse) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({4, 4}), comm);
    ddp.forward(world.rank + 1.0).backward();
    EXPECT_EQ(ddp.module()->grad(1), 3);
    using Used = std::vector<std::size_t>;
    ddp.forward(4, world.rank == 0 ? Used{0, 1} : Used{0}).backward();
    EXPECT_EQ(ddp.module()->grad(1), 3 + 8 / 2);
  });
}

TEST(DistributedDataParallel, FinishJoinsThePassOfARankWithoutGradients) {
  run_ranks(2, [](const World& world) {
    Warnings warnings;
    const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({4, 4}), comm);
    for (int step = 0; step < 3; ++step) {
      ddp.module()->zero_grad();
      const Tensor loss = world.rank == 0 ? ddp.forward(6) : ddp.forward(6, std::vector<std::size_t>{});
      if (world.rank == 0) loss.backward();
      ddp.finish();
      ddp.finish();
      EXPECT_EQ(ddp.module()->grad(0), 3);
      EXPECT_EQ(ddp.module()->grad(1), 6);
      EXPECT_EQ(ddp.stats().passes, step + 1);
    }
  });
}

TEST(DistributedDataParallel, UsesTheOrderInWhichGradientsBecameReadyOnRank0) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({16, 32, 16}), comm);
    using Used = std::vector<std::size_t>;
    const auto offsets = [&] {
      ddp.module()->zero_grad();
      ddp.forward(world.rank + 1.0, world.rank == 0 ? Used{1, 2, 0} : Used{0, 1, 2}).backward();
      EXPECT_EQ(ddp.module()->grad(2), 4.5);
      std::vector<std::int64_t> all;
      const Tensor* first = &ddp.module()->weights[0];
      const auto* base = static_cast<const float*>(first->grad().storage().data());
      for (const Tensor& weight : ddp.module()->weights) all.push_back(weight.grad().const_data_ptr<float>() - base);
      const std::int64_t lowest = *std::min_element(all.begin(), all.end());
      for (std::int64_t& offset : all) offset -= lowest;
      return all;
    };
    EXPECT_EQ(offsets(), (std::vector<std::int64_t>{48, 16, 0}));  // reverse of the order of definition
    EXPECT_EQ(offsets(), (std::vector<std::int64_t>{0, 32, 16}));
    EXPECT_EQ(offsets(), (std::vector<std::int64_t>{0, 32, 16}));
  });
}

void expect_on_wire(WireType wire, double sent, double received) {
  run_ranks(2, [&](const World&) {
    Communicator comm = Communicator::join();
    Ddp ddp(weighted_sum({32}), comm, {.wire = wire});
    for (int step = 0; step < 2; ++step) {
      ddp.module()->zero_grad();
      ddp.forward(sent).backward();
      EXPECT_EQ(ddp.module()->grad(0), received);
      EXPECT_EQ(ddp.module()->weights[0].grad().scalar_type(), torch::kFloat);
    }
    EXPECT_EQ(ddp.stats().bytes, 2 * 33 * (wire == WireType::Full ? 4 : 2));
  });
}

TEST(Wire, RoundsToItsTypeOnlyOnRequest) {
  expect_on_wire(WireType::Full, 1.001F, 1.001F);
  expect_on_wire(WireType::Bf16, 1.001, 1);
  expect_on_wire(WireType::Fp16, 1.001, 1 + 1.0 / 1024);
}

TEST(Wire, DividesBeforeTheSumCanOverflow16Bits) { expect_on_wire(WireType::Fp16, 40000, 40000); }

TEST(DistributedDataParallel, ReducesParametersOfSeveralTypes) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    const auto model = weighted_sum({3});
    model->add(torch::zeros({3}, torch::kDouble));
    model->add(torch::zeros({3}, torch::kBFloat16));
    model->add(torch::zeros({3}, torch::kHalf));
    Ddp ddp(model, comm);
    for (int step = 0; step < 2; ++step) {
      model->zero_grad();
      ddp.forward(world.rank + 1.0).backward();
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(model->grad(i), 1.5 * static_cast<double>(i + 1));
    }
    EXPECT_EQ(ddp.stats().buckets, 2 * 4);
  });
}

TEST(DistributedDataParallel, LaysGradientsOutLikeTheirParameters) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 4, 3).bias(false));
    conv->weight.set_data(conv->weight.contiguous(torch::MemoryFormat::ChannelsLast));
    DistributedDataParallel ddp(conv, comm);
    const Tensor images = torch::arange(75, torch::kFloat).view({1, 3, 5, 5});
    ddp.forward(images * (world.rank + 1)).sum().backward();
    EXPECT_EQ(conv->weight.grad().strides(), conv->weight.strides());

    const Tensor weight = conv->weight.detach().clone().requires_grad_();
    torch::conv2d(images * 1.5, weight).sum().backward();
    EXPECT_TRUE(conv->weight.grad().equal(weight.grad()));
  });
}

TEST(DistributedDataParallel, ThrowsFromBackwardWhenAPeerIsLost) {
  const auto ends = run_ranks_to_end(
      3,
      [](const World& world) {
        Communicator comm = Communicator::join();
        Ddp ddp(weighted_sum({4, 4}), comm, kOneBucketEach);
        if (world.rank == 1) {
          ddp.module()->weights[0].register_hook([](const Tensor&) { std::raise(SIGKILL); });
        }
        const Error error = error_of([&] { ddp.forward(1).backward(); });
        EXPECT_EQ(error.kind(), ErrorKind::Comm);
        EXPECT_TRUE(says(error.message(), {"rank 1"}));
      },
      std::chrono::seconds(30));
  if (ends.empty()) return;
  EXPECT_TRUE(ends[0].ran && ends[0].status.code == 0) << ends[0].output;
  EXPECT_EQ(ends[1].status.signal, SIGKILL);
  EXPECT_TRUE(ends[2].ran && ends[2].status.code == 0) << ends[2].output;
}

}  // namespace
}  // namespace tandem
