#pragma once

#include <tandem/training.h>
#include <torch/torch.h>

#include <filesystem>

#include "train/small_net_test.h"

namespace tandem {

// One process' part of a training.
class SmallTraining {
 public:
  SmallTraining(Communicator& comm, const BatchOptions& batch, TrainingOptions options,
                const std::filesystem::path& folder, Precision precision = Precision::Fp32)
      : comm_(comm),
        scaler_(precision, torch::kCPU),
        plan_(plan_batch(batch, comm.world().size)),
        training_({*model_.module(), optimizer_, scaler_, &ema_}, comm_, plan_, options, folder) {
    training_.begin(sampler_);
  }

  void step() {
    const auto loss = [&](const SampleBatch& batch) { return small_loss(model_, batch); };
    train_step(model_, optimizer_, scaler_, sampler_.next(), loss, training_.step_options(0.01, 1));
    training_.end_step();
  }

  Training& operator*() { return training_; }
  Training* operator->() { return &training_; }

 private:
  static SmallNet first_weights() {
    torch::set_num_threads(1);
    torch::manual_seed(1);
    return {};
  }

  Communicator& comm_;
  SmallModel model_{first_weights(), comm_};
  AdamW optimizer_{*model_.module()};
  Ema ema_{*model_.module(), {.decay = 0.9, .ramp = 3, .buffers = true}};
  LossScaler scaler_;
  BatchPlan plan_;
  Sampler sampler_{
      {.num_samples = 37, .batch_size = plan_.batch_size, .batches_per_step = plan_.batches_per_step(), .seed = 5},
      shard_of(comm_.world())};
  Training training_;
};

}  // namespace tandem
