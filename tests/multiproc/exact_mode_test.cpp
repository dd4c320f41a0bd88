#include <gtest/gtest.h>

#include "multiproc/training_bits.h"

namespace tandem {
namespace {

std::string outcome(int num_ranks, const BitsSettings& settings) {
  return what_all_print(num_ranks, [&](const World&) {
    Communicator comm = Communicator::join();
    train_and_print(comm, settings);
  });
}

TEST(ExactMode, GivesTheSameBitsOnAnyNumberOfRanks) {
  const std::string one = outcome(1, {});
  EXPECT_EQ(outcome(2, {}), one);
  EXPECT_EQ(outcome(4, {}), one);
  EXPECT_EQ(outcome(8, {}), one);
}

TEST(ExactMode, WorksForAnyNumberOfShards) {
  const std::string one = outcome(1, {.num_batches = 6});
  EXPECT_EQ(outcome(3, {.num_batches = 6}), one);
  EXPECT_EQ(outcome(6, {.num_batches = 6}), one);
}

TEST(ExactMode, WorksInMixedPrecision) {
  for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
    EXPECT_EQ(outcome(4, {.precision = precision}), outcome(1, {.precision = precision}));
  }
  EXPECT_NE(outcome(2, {.precision = Precision::Bf16}), outcome(2, {})) << "so it is another precision";
}

TEST(TrainStep, GivesTheSameBitsTwice) {
  EXPECT_EQ(outcome(2, {.is_exact = false}), outcome(2, {.is_exact = false}));
  EXPECT_NE(outcome(2, {.is_exact = false}), outcome(1, {.is_exact = false})) << "so it takes exact mode";
}

}  // namespace
}  // namespace tandem
