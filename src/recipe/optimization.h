#pragma once

#include <tandem/event_log.h>

#include <cstdint>
#include <string>

#include "recipe/cadence.h"
#include "recipe/optimize_options.h"

namespace tandem {

class Accelerator;

// fit_schedule for a run of this Accelerator; prints it if a warm-up that a preset chose was shortened. `warmup` names
// the setting that it comes from.
OptimizeOptions fit_schedule(Accelerator& accelerator, const OptimizeOptions& options, std::int64_t steps_per_epoch,
                             const std::string& warmup = "warmup-steps");

// The steps of a training loop and its evaluations, as OptimizeOptions describe them. Make it before the loop:
//
//   Optimization optimization(accelerator, options.optimize);
//   for (const auto& batch : accelerator.batches(loader)) {
//     const auto pass = accelerator.accumulate();
//     accelerator.backward(loss_of(model, batch));
//     if (!optimization.step()) continue;
//     const double loss = evaluate_model();
//     optimization.record({{"loss", loss}}, loss);
//   }
class Optimization {
 public:
  // The best metric and the patience are in the checkpoints. Which metrics are better: TrainingOptions::retention.
  Optimization(Accelerator& accelerator, const OptimizeOptions& options);
  Optimization(const Optimization&) = delete;
  Optimization& operator=(const Optimization&) = delete;

  // After the last micro-batch of a step, clips the gradient norm and updates the weights, with the learning rate of
  // the schedule; before that it does nothing. Returns whether an evaluation is due.
  bool step();

  // After that evaluation, on every rank: logs and prints the `result`, saves a checkpoint with the `metric`, of which
  // the best is kept, and stops the run when the patience is exhausted.
  void record(const EventFields& result, double metric);

  // Whether `record` was called for the last step.
  bool is_evaluated() const { return is_evaluated_; }

  const Cadence& cadence() const { return cadence_; }

 private:
  // The length of the run that the schedule had, for a checkpoint.
  struct PlannedSteps {
    Accelerator& accelerator;
    std::int64_t before_resume = 0;  // 0: not resumed

    std::string state() const;
    void load_state(const std::string& state);
  };

  void say_if_schedule_changed();

  Accelerator& accelerator_;
  OptimizeOptions options_;
  double peak_lr_;
  Cadence cadence_;
  PlannedSteps planned_;
  bool is_evaluated_ = false;
};

}  // namespace tandem
