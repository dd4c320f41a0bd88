#pragma once

#include <tandem/event_log.h>

#include <cstdint>

#include "recipe/cadence.h"
#include "recipe/optimize_options.h"

namespace tandem {

class Accelerator;

// The steps of a training loop and its evaluations, as OptimizeOptions describe them. Make it before the loop:
//
//   Optimization optimization(accelerator, options.optimize);
//   for (const auto& batch : batches) {
//     const auto pass = accelerator.accumulate();
//     accelerator.backward(loss_of(model, batch));
//     if (!optimization.step()) continue;
//     const double loss = evaluate_model();
//     optimization.keep({{"loss", loss}}, loss);
//   }
class Optimization {
 public:
  // `better` says which values of the metric are better.
  Optimization(Accelerator& accelerator, const OptimizeOptions& options, Better better = Better::Lower);

  // After the last micro-batch of a step, clips the gradient norm and updates the weights, with the learning rate of
  // the schedule; before that it does nothing. Returns whether an evaluation is due.
  bool step();

  // After that evaluation, on every rank: logs and prints the `result`, saves a checkpoint with the `metric`, of which
  // the best is kept, and stops the run when the patience is exhausted.
  void keep(const EventFields& result, double metric);

  // Whether `keep` was called for the last step.
  bool is_evaluated() const { return is_evaluated_; }

  const Cadence& cadence() const { return cadence_; }

 private:
  Accelerator& accelerator_;
  OptimizeOptions options_;
  double peak_lr_;
  Cadence cadence_;
  std::int64_t step_ = 0;  // steps completed
  bool is_evaluated_ = false;
};

}  // namespace tandem
