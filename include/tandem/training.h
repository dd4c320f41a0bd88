#pragma once

#include <tandem/checkpoint.h>
#include <tandem/communicator.h>
#include <tandem/dataset.h>
#include <tandem/ema.h>
#include <tandem/mixed_precision.h>
#include <tandem/optimizer.h>
#include <tandem/run_options.h>
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
  field("epochs", o.epochs, "passes over the data");
  field("max-steps", o.max_steps, "end after this many steps, and the learning rate schedule with them");
  field("seed", o.seed, "random seed of initial weights, order of samples, dropout");
  field("threads", o.threads, "intra-op threads of each rank; default: torch's, or 1 with --shards");
  field("save-every", o.save_every, "steps between checkpoints; 0: only at the end");
  field("resume", o.resume,
        "auto: if there is a checkpoint; latest: must exist; no: new run; PATH; weights[:PATH]: weights only");
  field("stop-at", o.stop_at, "save and end this long after the start, such as 11h30m");
  field("", o.retention, "checkpoints");
}

// A moving average of the weights of a part. Call its update() after each train_step of the part.
struct NamedAverage {
  Ema* average = nullptr;
  std::string name = {};  // empty: the only average of its part
};

// A model with its optimizer. A run has one part without a name, or several with names.
struct TrainedPart {
  torch::nn::Module& module;  // of the DistributedDataParallel
  Optimizer& optimizer;
  LossScaler& scaler;
  std::vector<NamedAverage> averages = {};
  std::string name = {};
};

// A small state of the program that is saved in checkpoints by name.
struct KeptState {
  std::string name;
  std::function<std::string()> save;
  std::function<void(const std::string& text)> load;  // called when a run is resumed
};

void validate(const TrainingOptions& options);
std::vector<GivesWay> gives_way(const TrainingOptions& options);

// A Loader or Sampler, type-erased.
struct SampleSource {
  std::function<SamplerState()> state;
  std::function<void(const SamplerState&)> set_state;
  std::int64_t num_samples = 0;
  std::int64_t steps_per_epoch = 0;
  std::string content_key = {};  // identifies the data; an exact run does not resume with another. Empty: unknown
};

template <class Samples>
concept GivesSamples = requires(Samples& samples) {
  samples.next(), samples.state(), samples.steps_per_epoch();
};

template <GivesSamples Samples>  // which outlives the result
SampleSource source_of(Samples& samples) {
  return {.state = [&samples] { return samples.state(); },
          .set_state = [&samples](const SamplerState& state) { samples.set_state(state); },
          .num_samples = samples.num_samples(),
          .steps_per_epoch = samples.steps_per_epoch(),
          .content_key = detail::content_key_of(samples)};
}

// Counts the steps of a run, saves checkpoints, resumes from them and ends the run. Every rank has one and makes the
// same calls; rank 0 saves, in the background. A save that fails is an Error on every rank, at the next save or at the
// end of the run.
class Training {
 public:
  // Create it after the DistributedDataParallel; the parts outlive it. Checkpoints go to `folder`; none are saved if it
  // is empty.
  Training(std::vector<TrainedPart> parts, Communicator& comm, const BatchPlan& plan, const TrainingOptions& options,
           std::filesystem::path folder = {}, std::vector<KeptState> kept = {});
  Training(const TrainedPart& part, Communicator& comm, const BatchPlan& plan, const TrainingOptions& options,
           std::filesystem::path folder = {})
      : Training(std::vector<TrainedPart>{part}, comm, plan, options, std::move(folder)) {}
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  ~Training();

  // The data of the steps. Resumes from a checkpoint if there is one.
  void begin(SampleSource source);
  template <GivesSamples Samples>
  void begin(Samples& samples) {
    begin(source_of(samples));
  }

  // Whether there is another step. If not, the last one has been saved.
  bool has_next() const;
  std::int64_t step() const;       // the next one, from 0
  std::int64_t num_steps() const;  // of the whole run

  // The options of train_step for the next step.
  StepOptions step_options(double lr, double max_norm = 0) const;

  // Call it after train_step. Saves if it is due; ends the run if a rank was asked to (SIGTERM, --stop-at,
  // ask_to_stop). The best checkpoint is the one with the best metric, such as the loss of an evaluation after this
  // step.
  void end_step(std::optional<double> metric = std::nullopt);

  // Saves a checkpoint now, at most once per step. A resumed run continues with `step()`.
  void save(std::optional<double> metric = std::nullopt);

  // Saves at the end of the step in which any rank calls this.
  void ask_to_save();

  // Waits until the last checkpoint is on disk. The end of the run waits by itself.
  void wait_for_save();

  const std::filesystem::path& last_saved() const;  // or being saved, or resumed from; empty: none

  // The step after which the replicas were last compared: every 100 steps, and at the end.
  std::optional<std::int64_t> replicas_equal_at() const;

  // Ends the run on every rank after the step in which any rank calls this.
  void ask_to_stop(const std::string& why);
  const std::string& why_stopped() const;  // empty: not stopped, or all steps are done
  bool was_interrupted() const;            // steps are left, and it was not the program that asked to stop

  // What to tell the user about the resume.
  const std::vector<std::string>& notes() const;

 private:
  struct Run;
  std::unique_ptr<Run> run_;
};

}  // namespace tandem
