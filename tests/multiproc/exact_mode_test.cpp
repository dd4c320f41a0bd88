#include <gtest/gtest.h>
#include <tandem/sampler.h>
#include <tandem/train_step.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>

#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "train/small_net_test.h"

namespace tandem {
namespace {

using torch::Tensor;

std::string bytes_of(const Tensor& tensor) {
  const Tensor plain = tensor.contiguous();
  return {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()};
}

// Everything that a step changes, as one number.
std::string fingerprint(torch::nn::Module& module, const Optimizer& optimizer) {
  std::string bytes;
  for (const Tensor& tensor : module.parameters()) bytes += bytes_of(tensor);
  for (const Tensor& tensor : module.buffers()) bytes += bytes_of(tensor);
  for (const auto& [name, tensor] : optimizer.state()) bytes += bytes_of(tensor);
  return str(std::hash<std::string>()(bytes));
}

// Seven steps of 3 * num_batches of 37 samples, so over several epochs; prints what comes of it.
struct Settings {
  std::int64_t num_batches = 8;
  bool is_exact = true;
  Precision precision = Precision::Fp32;
};

void train(const World& world, const Settings& settings) {
  torch::set_num_threads(1);
  Communicator comm = Communicator::join();
  torch::manual_seed(1);
  SmallModel model(SmallNet(), comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(settings.precision, torch::kCPU);
  Sampler sampler({.num_samples = 37, .batch_size = 3, .batches_per_step = settings.num_batches, .seed = 5},
                  shard_of(world));
  for (std::int64_t step = 0; step < 7; ++step) {
    const auto loss = [&](const SampleBatch& batch) { return small_loss(model, batch); };
    const StepOptions options{.step = step, .seed = 5, .lr = 0.01, .max_norm = 1, .is_exact = settings.is_exact};
    const StepResult result = train_step(model, optimizer, scaler, sampler.next(), loss, options);
    std::cout << str("step ", step, ": loss ", result.loss, ", norm ", result.norm, '\n');
  }
  std::cout << fingerprint(*model.module(), optimizer) << std::endl;
}

// From its first step on, without torch's warnings of parameters that a rank does not use.
std::string log_of(const RankOutcome& end) {
  std::string log;
  for (const std::string& line : split(end.output, '\n')) {
    if (!line.starts_with("[")) log += line + '\n';
  }
  return log.substr(std::min(log.find("step 0"), log.size()));
}

// What all ranks printed alike.
std::string outcome(int num_ranks, const Settings& settings) {
  const auto ends = run_ranks_to_end(
      num_ranks, [&](const World& world) { train(world, settings); }, std::chrono::seconds(60));
  if (ends.empty()) return "";
  EXPECT_EQ(failures(ends), "");
  for (const RankOutcome& end : ends) EXPECT_EQ(log_of(end), log_of(ends[0]));
  EXPECT_NE(log_of(ends[0]), "");
  return log_of(ends[0]);
}

TEST(ExactMode, GivesTheSameBitsOnAnyNumberOfRanks) {
  const std::string one = outcome(1, {});
  EXPECT_EQ(outcome(2, {}), one);
  EXPECT_EQ(outcome(4, {}), one);
  EXPECT_EQ(outcome(8, {}), one);
}

TEST(ExactMode, DoesSoForShardsThatAreNoPowerOfTwo) {
  const std::string one = outcome(1, {.num_batches = 6});
  EXPECT_EQ(outcome(3, {.num_batches = 6}), one);
  EXPECT_EQ(outcome(6, {.num_batches = 6}), one);
}

TEST(ExactMode, DoesSoInMixedPrecision) {
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
