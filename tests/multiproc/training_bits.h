#pragma once

#include <gtest/gtest.h>
#include <tandem/sampler.h>
#include <tandem/train_step.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"
#include "train/small_training_test.h"

namespace tandem {

inline std::string bytes_of(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.cpu().contiguous();
  return {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()};
}

// A hash of everything that a step changes.
inline std::string fingerprint(torch::nn::Module& module, const Optimizer& optimizer) {
  std::string bytes;
  for (const torch::Tensor& tensor : module.parameters()) bytes += bytes_of(tensor);
  for (const torch::Tensor& tensor : module.buffers()) bytes += bytes_of(tensor);
  for (const auto& [name, tensor] : optimizer.state()) bytes += bytes_of(tensor);
  return str(std::hash<std::string>()(bytes));
}

struct BitsSettings {
  std::int64_t num_batches = 8;
  bool is_exact = true;
  Precision precision = Precision::Fp32;
};

// Seven steps over several epochs of 37 samples; prints the results and returns the hash. All ranks call it. Everything
// in it is deterministic, on any device.
inline std::string train_and_print(Communicator& comm, const BitsSettings& settings) {
  SmallModel model(make_small_net(comm.device()), comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(settings.precision, comm.device());
  Sampler sampler(
      {.num_samples = 37, .batch_size = 3, .batches_per_step = settings.num_batches, .seed = 5, .tail = Tail::Pad},
      shard_of(comm.world()));
  for (std::int64_t step = 0; step < 7; ++step) {
    const auto loss = [&](const SampleBatch& batch) { return small_loss(model, batch); };
    const StepOptions options{.step = step, .seed = 5, .lr = 0.01, .max_norm = 1, .is_exact = settings.is_exact};
    const StepResult result = train_step(model, optimizer, scaler, sampler.next(), loss, options);
    std::cout << str("step ", step, ": loss ", result.loss, ", norm ", result.norm, '\n');
  }
  const std::string end = fingerprint(*model.module(), optimizer);
  std::cout << end << std::endl;
  return end;
}

// The log from the first step on, without torch's warnings about unused parameters.
inline std::string log_of(const RankOutcome& end) {
  std::string log;
  for (const std::string& line : split(end.output, '\n')) {
    if (!line.starts_with("[")) log += line + '\n';
  }
  return log.substr(std::min(log.find("step 0"), log.size()));
}

// The common output of the ranks from the first step on.
inline std::string what_all_print(int num_ranks, const RankBody& body) {
  const auto ends = run_ranks_to_end(num_ranks, body, std::chrono::seconds(60));
  if (ends.empty()) return "";
  EXPECT_EQ(failures(ends), "");
  for (const RankOutcome& end : ends) EXPECT_EQ(log_of(end), log_of(ends[0]));
  EXPECT_NE(log_of(ends[0]), "");
  return log_of(ends[0]);
}

// In exact mode, up to step `last` of ten. All ranks call it.
inline void run_until(std::int64_t last, Communicator& comm, const std::filesystem::path& folder, Precision precision) {
  const World& world = comm.world();
  SmallTraining training(comm, kFourShards, ten_steps(), folder, precision);
  while (training->has_next()) {
    if (last < 10 && training->step() + 1 == last && world.rank == world.size - 1) training->ask_to_stop("enough");
    training.step();
  }
  EXPECT_EQ(training->why_stopped(), last < 10 ? "enough" : "");
  EXPECT_EQ(training->step(), last);
}

inline void expect_same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(read_file(a / name), read_file(b / name)) << name;
  }
}

}  // namespace tandem
