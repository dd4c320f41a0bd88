#include <gtest/gtest.h>
#include <tandem/train_step.h>
#include <torch/types.h>

#include <cmath>

#include <vector>

#include "base/error_test.h"
#include "multiproc/run_ranks.h"
#include "multiproc/step_contract.h"
#include "train/line_model_test.h"

namespace tandem {
namespace {

class StepContract : public testing::TestWithParam<int> {};

TEST_P(StepContract, IsKept) {
  run_ranks(GetParam(), [](const World&) {
    Communicator comm = Communicator::join();
    check_step_contract(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, StepContract, testing::Values(1, 2, 3));

TEST(TrainStep, WantsTheOptimizerOfTheSameModule) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  const Line other;
  Sgd optimizer(*other);
  const Error error = error_of([&] { step_of(model, optimizer, {{{1}}}); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"optimizer", "0 of the 1", "1 other"}));
  EXPECT_NE(error.hint(), "");
}

TEST(TrainStep, WantsOneNumberForALoss) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  LossScaler scaler(Precision::Fp32, comm.device());
  const auto message_of = [&](const LossSum& loss) {
    return error_of([&] { train_step(model, optimizer, scaler, std::vector{0}, [&](int) { return loss; }, {}); })
        .message();
  };
  EXPECT_NE(message_of({torch::ones({3}), 3}).find("3 elements"), std::string::npos);
  EXPECT_NE(message_of({{}, 1}).find("no value"), std::string::npos);
  EXPECT_NE(message_of({torch::ones({}), -1}).find("count -1"), std::string::npos);
}

TEST(TrainStep, NamesAFewOfManySamples) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  Numbers batch{.x = {std::numeric_limits<double>::infinity()}};
  for (std::int64_t id = 0; id < 18; ++id) batch.ids.push_back(id);
  EXPECT_TRUE(error_of([&] { step_of(model, optimizer, {batch}); })
                  .message()
                  .ends_with("; samples 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 and 2 more)"));
}

TEST(TrainStep, WantsSomethingToCount) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  const Error error = error_of([&] { step_of(model, optimizer, {{}}, {.step = 3}); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  EXPECT_NE(error.message().find("step 4 has a count of 0"), std::string::npos) << error.message();
}

TEST(TrainStep, WantsALearningRateThatIsANumber) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm);
  Sgd optimizer(*model.module());
  const double before = model.module()->value();
  const Error error = error_of([&] { step_of(model, optimizer, {{{1}}}, {.lr = std::nan("")}); });
  EXPECT_TRUE(says(error.message(), {"learning rate", "step 1", "nan"}));
  EXPECT_EQ(model.module()->value(), before);
}

TEST(ExactMode, RefusesWhatDependsOnTheNumberOfRanks) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm, {.buffers = BufferSync::Average});
  Sgd optimizer(*model.module());
  const Error error = error_of([&] { step_of(model, optimizer, {{{1}}}, {.is_exact = true}); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.hint(), {"--shards", "--wire full --buffers broadcast"}));
}

TEST(TrainStep, WantsALossThatDependsOnTheModel) {
  run_ranks(2, [](const World&) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(Precision::Fp32, torch::kCPU);
    const auto loss = [&](int) { return LossSum{model(torch::ones(1)).sum().detach(), 1}; };
    const Error error = error_of([&] { train_step(model, optimizer, scaler, std::vector{0}, loss, {.step = 2}); });
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(says(error.message(), {"loss", "step 3", "parameter"}));
    EXPECT_TRUE(says(error.hint(), {"detach()"}));
  });
}

// Two micro-batches on each rank: one with work 10 + rank, and one without, whose count of 3 is used.
TEST(TrainStep, AddsUpTheWorkOfAllRanks) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    LossScaler scaler(Precision::Fp32, torch::kCPU);
    const auto loss = [&](std::int64_t work) { return LossSum{model(torch::ones(1)).sum(), 3, work}; };
    const std::vector<std::int64_t> batches = {10 + world.rank, 0};
    const StepResult result = train_step(model, optimizer, scaler, batches, loss, {});
    EXPECT_EQ(result.work, 27);
    EXPECT_EQ(result.count, 12);
  });
}

TEST(TrainStep, RefusesSumsInFp16) {
  Communicator comm = Communicator::join();
  LineModel model(Line(), comm, {.wire = WireType::Fp16});
  Sgd optimizer(*model.module());
  const Error error = error_of([&] { step_of(model, optimizer, {{{1}}}); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"fp16"}));
  EXPECT_TRUE(says(error.hint(), {"--wire bf16"}));
}

TEST(ExactMode, WantsEquallyManyShardsOnEveryRankAndAPowerOfTwo) {
  run_ranks(2, [](const World& world) {
    Communicator comm = Communicator::join();
    LineModel model(Line(), comm);
    Sgd optimizer(*model.module());
    const std::vector<Numbers> batches(world.rank + 1, Numbers{{1}});
    const Error unequal = error_of([&] { step_of(model, optimizer, batches, {.step = 5, .is_exact = true}); });
    EXPECT_TRUE(says(unequal.message(), {"step 6", "1 and 2 shards"}));
    const std::vector<Numbers> three(3, Numbers{{1}});
    const Error odd = error_of([&] { step_of(model, optimizer, three, {.is_exact = true}); });
    EXPECT_TRUE(says(odd.message(), {"3 shards", "2 ranks"}));
  });
}

}  // namespace
}  // namespace tandem
