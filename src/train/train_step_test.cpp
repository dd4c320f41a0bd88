#include <gtest/gtest.h>
#include <tandem/train_step.h>
#include <torch/torch.h>

#include <limits>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using torch::Tensor;

// The loss of a sample x is w * x, so the gradient of the mean loss is the mean of x.
struct LineImpl : torch::nn::Module {
  LineImpl() { weight = register_parameter("weight", torch::zeros({1})); }
  Tensor forward(const Tensor& x) { return weight * x; }

  Tensor weight;
};
TORCH_MODULE(Line);
using LineModel = DistributedDataParallel<Line>;

struct Numbers {
  std::vector<double> x;
  std::vector<std::int64_t> ids = {};
};

StepResult step_of(LineModel& model, Optimizer& optimizer, const std::vector<Numbers>& batches,
                   const StepOptions& options = {.lr = 1}) {
  const auto loss = [&](const Numbers& batch) {
    return LossSum{model(torch::tensor(batch.x, torch::kFloat)).sum(), static_cast<std::int64_t>(batch.x.size())};
  };
  LossScaler scaler(Precision::Fp32, torch::kCPU);
  return train_step(model, optimizer, scaler, batches, loss, options);
}

// A rank with two micro-batches, one with one and one with none: (1 + 2 + 3 + 4 + 10) / 5 = 4.
TEST(TrainStep, TakesTheMeanOverAllSamplesHoweverTheyAreSpread) {
  run_ranks(3, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    const std::vector<std::vector<Numbers>> of_ranks = {{{{1, 2, 3}}, {{4}}}, {{{10}}}, {}};
    const StepResult result = step_of(model, optimizer, of_ranks[world.rank], {.lr = 0.5});
    EXPECT_EQ(model.module()->weight.item<double>(), -2);
    EXPECT_EQ(result.count, 5);
    EXPECT_EQ(result.norm, 4);
    EXPECT_EQ(result.loss, 0);

    EXPECT_EQ(step_of(model, optimizer, of_ranks[world.rank]).loss, -8);  // w is -2, the mean of x is 4
    EXPECT_EQ(model.stats().passes, 2);
    EXPECT_EQ(model.stats().buckets, 2);
  });
}

TEST(TrainStep, ClipsTheGradientOfTheMean) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  EXPECT_EQ(step_of(model, optimizer, {{{3, 5}}}, {.lr = 1, .max_norm = 1}).norm, 4);
  EXPECT_NEAR(model.module()->weight.item<double>(), -1, 1e-6);
  step_of(model, optimizer, {{{3, 5}}}, {.lr = 1, .max_norm = 100});
  EXPECT_NEAR(model.module()->weight.item<double>(), -5, 1e-6);
}

TEST(TrainStep, LeavesMeansToBackwardPassesOfTheUsers) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    step_of(model, optimizer, {{{1}}});
    optimizer.zero_grad();
    model(torch::full({1}, world.rank * 10)).sum().backward();
    EXPECT_EQ(model.module()->weight.grad().item<double>(), 5);
  });
}

TEST(TrainStep, WantsTheOptimizerOfTheSameModule) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  const Line other;
  Sgd optimizer(*other);
  const Error error = error_of([&] { step_of(model, optimizer, {{{1}}}); });
  EXPECT_EQ(error.message(), "training: the optimizer has 0 of the 1 parameters that the model trains, and 1 others");
  EXPECT_NE(error.hint(), "");
}

TEST(TrainStep, NamesRankStepAndSamplesOfALossThatIsNotFinite) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    const double bad = world.rank == 1 ? std::numeric_limits<double>::infinity() : 1;
    const std::vector<Numbers> batches = {{{1, 2}, {4, 5}}, {{3, bad}, {6, 7}}};
    const Error error = error_of([&] { step_of(model, optimizer, batches, {.step = 12}); });
    EXPECT_EQ(error.message(),
              "training: the loss of step 12 is not finite on rank 1, micro-batch 1 (nan; samples 6 7)");
    EXPECT_EQ(model.module()->weight.item<double>(), 0);
  });
}

TEST(TrainStep, WantsSomethingToCount) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  EXPECT_EQ(error_of([&] { step_of(model, optimizer, {{}}, {.step = 3}); }).message(),
            "training: the losses of step 3 count nothing");
}

TEST(ExactMode, RefusesWhatDependsOnTheNumberOfRanks) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm, {.buffers = BufferSync::Average});
  Sgd optimizer(*model.module());
  EXPECT_EQ(error_of([&] { step_of(model, optimizer, {{{1}}}, {.is_exact = true}); }).message(),
            "training: with this --wire or --buffers, bits depend on the number of ranks");
}

// The loss of rank 1 is finite, but 65536 times as much is not.
TEST(MixedPrecision, SkipsAStepOnAllRanksWhenOneOverflowsAndRecovers) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(Precision::Fp16, torch::kCPU, {.growth_interval = 2});
    std::vector<bool> skipped;
    std::vector<double> scales, weights;
    for (std::int64_t step = 0; step < 4; ++step) {
      const float x = step == 1 && world.rank == 1 ? 1e35F : 1;
      const auto loss = [&](float number) { return LossSum{model(torch::full({1}, number)).sum(), 1}; };
      const StepOptions options{.step = step, .lr = 1};
      skipped.push_back(train_step(model, optimizer, scaler, std::vector{x}, loss, options).was_skipped);
      scales.push_back(scaler.scale());
      weights.push_back(model.module()->weight.item<double>());
    }
    EXPECT_EQ(skipped, (std::vector<bool>{false, true, false, false}));
    EXPECT_EQ(scales, (std::vector<double>{65536, 32768, 32768, 65536}));
    EXPECT_EQ(weights, (std::vector<double>{-1, -1, -2, -3}));
  });
}

TEST(MixedPrecision, StopsAtAGradientThatOverflowsWithoutAScale) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  const Error error = error_of([&] { step_of(model, optimizer, {{{3e38, 3e38}}}, {.step = 4}); });
  EXPECT_EQ(error.message(), "training: the gradient of step 4 is not finite, though its loss is");
  EXPECT_EQ(model.module()->weight.item<double>(), 0);
}

TEST(MixedPrecision, StopsWhenNoScaleHelps) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  LossScaler scaler(Precision::Fp16, torch::kCPU);
  const auto loss = [&](int) {
    Tensor sum = model(torch::ones(1)).sum();
    sum.register_hook([](const Tensor& gradient) { return gradient / 0; });
    return LossSum{sum, 1};
  };
  const auto step = [&] { train_step(model, optimizer, scaler, std::vector{0}, loss, {.step = 7}); };
  for (int i = 0; i < 26; ++i) EXPECT_EQ(error_of(step).message(), "");  // 65536 halved 26 times is 1/1024
  EXPECT_EQ(error_of(step).message(), "training: the gradient of step 7 is not finite, whatever the loss scale");
}

TEST(TrainStep, WantsALossThatDependsOnTheModel) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(Precision::Fp32, torch::kCPU);
    const auto loss = [&](int) { return LossSum{model(torch::ones(1)).sum().detach(), 1}; };
    EXPECT_EQ(error_of([&] { train_step(model, optimizer, scaler, std::vector{0}, loss, {.step = 2}); }).message(),
              "training: the loss of step 2 depends on no parameter, on any rank");
  });
}

TEST(TrainStep, RefusesSumsInFp16) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm, {.wire = WireType::Fp16});
  Sgd optimizer(*model.module());
  EXPECT_EQ(error_of([&] { step_of(model, optimizer, {{{1}}}); }).message(),
            "training: gradients travel as sums over all samples, for which fp16 has too small a range");
}

TEST(ExactMode, WantsEquallyManyShardsOnEveryRankAndAPowerOfTwo) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    const std::vector<Numbers> batches(world.rank + 1, Numbers{{1}});
    EXPECT_EQ(error_of([&] { step_of(model, optimizer, batches, {.step = 5, .is_exact = true}); }).message(),
              "training: in step 5 ranks have 1 and 2 shards");
    const std::vector<Numbers> three(3, Numbers{{1}});
    EXPECT_EQ(error_of([&] { step_of(model, optimizer, three, {.is_exact = true}); }).message(),
              "training: 3 shards on each of 2 ranks");
  });
}

}  // namespace
}  // namespace tandem
