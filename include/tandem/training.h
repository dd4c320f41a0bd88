#pragma once

#include <tandem/batch_plan.h>
#include <tandem/checkpoint.h>
#include <tandem/communicator.h>
#include <tandem/ema.h>
#include <tandem/loss_scaler.h>
#include <tandem/optimizer.h>
#include <tandem/sampler.h>
#include <tandem/train_step.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct TrainingOptions {
  std::int64_t epochs = 1;
  std::optional<std::int64_t> max_steps = {};
  std::uint64_t seed = 1;
  std::optional<int> threads = {};
  std::int64_t save_every = 0;
  Retention retention = {};
  std::string resume = "auto";
  std::optional<std::chrono::milliseconds> stop_at = {};
};

template <class Visitor>
void visit_fields(TrainingOptions& o, Visitor&& field) {
  field("epochs", o.epochs, "how often each sample is used");
  field("max-steps", o.max_steps, "end after so many steps, if that comes first");
  field("seed", o.seed, "decides first weights, order of samples, dropout");
  field("threads", o.threads, "threads that compute on each rank; 1 with --shards, whose bits depend on it");
  field("save-every", o.save_every, "steps from checkpoint to checkpoint; 0: one at the end");
  field("resume", o.resume,
        "auto: go on if there is a checkpoint; latest: there must be one; no; PATH; weights; weights:PATH");
  field("stop-at", o.stop_at, "save and end so long after the start, such as 11h30m");
  field("", o.retention, "checkpoints");
}

// A moving average of a part, updated by end_step.
struct NamedAverage {
  Ema* average = nullptr;
  std::string name = {};  // empty: the only one of its part
};

// What is trained by one optimizer. A run has one part without a name, or several with one.
struct TrainedPart {
  torch::nn::Module& module;  // that of the DistributedDataParallel
  Optimizer& optimizer;
  LossScaler& scaler;
  std::vector<NamedAverage> averages = {};
  std::string name = {};
};

// A small state of the program's own that checkpoints hold by name.
struct KeptState {
  std::string name;
  std::function<std::string()> save;
  std::function<void(const std::string& text)> load;  // called when a run is resumed
};

void validate(const TrainingOptions& options);

// Where the micro-batches come from, whatever its type.
struct SampleSource {
  std::function<SamplerState()> state;
  std::function<void(const SamplerState&)> set_state;
  std::int64_t num_samples = 0;
  std::int64_t steps_per_epoch = 0;
};

template <class Samples>
concept GivesSamples = requires(Samples& samples) {
  samples.next(), samples.state(), samples.steps_per_epoch();
};

template <GivesSamples Samples>  // a Loader or a Sampler, which outlives it
SampleSource source_of(Samples& samples) {
  return {.state = [&samples] { return samples.state(); },
          .set_state = [&samples](const SamplerState& state) { samples.set_state(state); },
          .num_samples = samples.num_samples(),
          .steps_per_epoch = samples.steps_per_epoch()};
}

// A run from step to step: where it stands, when it saves, when it ends, and how it goes on later. Every rank has one
// and makes the same calls; the first saves, in the background. A save that fails is an Error on every rank, at the
// next save or at the end of the run. What it says in `notes` is for the user's eyes.
class Training {
 public:
  // The DistributedDataParallel exists already, and the parts outlive the training. Checkpoints go to `folder`, or
  // nowhere if it is empty.
  Training(std::vector<TrainedPart> parts, Communicator& comm, const BatchPlan& plan, const TrainingOptions& options,
           std::filesystem::path folder = {}, std::vector<KeptState> kept = {});
  Training(const TrainedPart& part, Communicator& comm, const BatchPlan& plan, const TrainingOptions& options,
           std::filesystem::path folder = {})
      : Training(std::vector<TrainedPart>{part}, comm, plan, options, std::move(folder)) {}
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  ~Training();

  // The data that the steps use. Goes on where the checkpoint was, if there is one to resume.
  void begin(SampleSource source);
  template <GivesSamples Samples>
  void begin(Samples& samples) {
    begin(source_of(samples));
  }

  // Whether another step is due. If not, the last one has been saved.
  bool has_next() const;
  std::int64_t step() const;       // that is due; steps count from 0
  std::int64_t num_steps() const;  // of the whole run

  // For train_step.
  StepOptions step_options(double lr, double max_norm = 0) const;

  // After train_step. Saves if it is time; ends the run if a rank was asked to (SIGTERM, --stop-at, ask_to_stop). The
  // best checkpoint is the one with the best metric, such as the loss of an evaluation after this step.
  void end_step(std::optional<double> metric = std::nullopt);

  // Saves as the steps do by themselves, and only once a step. `step()` is then what a resumed run does next.
  void save(std::optional<double> metric = std::nullopt);

  // Every rank saves at the end of the step in which one rank calls this.
  void ask_to_save();

  // Returns when the last checkpoint is safe. At the end of the run it is, unless `save` was called later.
  void wait_for_save();

  const std::filesystem::path& last_saved() const;  // or resumed from, or still being saved; empty: none

  // How many steps were done when replicas were compared last: every 100 steps, and at the end.
  std::optional<std::int64_t> replicas_equal_at() const;

  // Every rank ends after the step in which one rank calls this.
  void ask_to_stop(const std::string& why);
  const std::string& why_stopped() const;  // empty: not at all, or by having done all steps

  const std::vector<std::string>& notes() const;

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace tandem
