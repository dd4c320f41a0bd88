#pragma once

#include <tandem/training.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/small_net_test.h"

namespace tandem {

// A small training on this rank.
class SmallTraining {
 public:
  SmallTraining(Communicator& comm, const BatchOptions& batch, TrainingOptions options,
                const std::filesystem::path& folder, Precision precision = Precision::Fp32)
      : comm_(comm),
        scaler_(precision, comm.device()),
        plan_(plan_batch(batch, comm.world().size)),
        training_(TrainedPart{*model_.module(), optimizer_, scaler_, {{&ema_}}}, comm_, plan_, options, folder) {
    training_.begin(sampler_);
  }

  void step(std::optional<double> metric = std::nullopt) {
    const auto loss = [&](const SampleBatch& batch) { return small_loss(model_, batch); };
    train_step(model_, optimizer_, scaler_, sampler_.next(), loss, training_.step_options(0.01, 1));
    training_.end_step(metric);
  }

  Training& operator*() { return training_; }
  Training* operator->() { return &training_; }
  Ema& ema() { return ema_; }
  SmallNet& net() { return model_.module(); }

 private:
  Communicator& comm_;
  SmallModel model_{make_small_net(comm_.device()), comm_};
  AdamW optimizer_{*model_.module()};
  Ema ema_{*model_.module(), {.decay = 0.9, .ramp = 3, .buffers = true}};
  LossScaler scaler_;
  BatchPlan plan_;
  Sampler sampler_{
      {.num_samples = 37, .batch_size = plan_.batch_size, .batches_per_step = plan_.batches_per_step(), .seed = 5},
      shard_of(comm_.world())};
  Training training_;
};

inline const BatchOptions kFourShards{.batch_size = 3, .shards = 4};
inline TrainingOptions ten_steps() { return {.epochs = 100, .max_steps = 10, .seed = 5}; }

}  // namespace tandem
