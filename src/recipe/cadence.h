#pragma once

#include <tandem/checkpoint_folder.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

struct CadenceOptions {
  std::int64_t eval_every = 0;
  std::int64_t patience = 0;
};

template <class Visitor>
void visit_fields(CadenceOptions& o, Visitor&& field) {
  field("eval-every", o.eval_every, "steps between evaluations, each with a checkpoint; 0: only at the end");
  field("patience", o.patience, "stop after this many evaluations in a row without improvement; 0: off");
}
void validate(const CadenceOptions& options);

// When a run is evaluated, which evaluation was the best, and when to stop early. Every rank has one and records the
// same values. Steps count from 1: the step that was just completed.
class Cadence {
 public:
  explicit Cadence(const CadenceOptions& options, Better better = Better::Lower);

  // Every `eval_every` steps, and after the last step.
  bool is_due(std::int64_t step, std::int64_t num_steps) const;

  // The metric of an evaluation. Returns whether it is the best so far; NaN never is.
  bool record(std::int64_t step, double metric);

  // Whether the last `patience` evaluations brought no improvement.
  bool is_exhausted() const;
  std::string why_exhausted() const;  // for Accelerator::stop

  std::optional<double> best() const { return best_; }
  std::int64_t best_step() const { return best_step_; }  // 0: none
  std::int64_t num_without_improvement() const { return num_without_improvement_; }

  // For a checkpoint, so that a resumed run counts on. A state that is damaged is an Error.
  std::string state() const;
  void load_state(const std::string& state);

 private:
  CadenceOptions options_;
  Better better_;
  std::optional<double> best_;
  std::int64_t best_step_ = 0;
  std::int64_t num_without_improvement_ = 0;
};

}  // namespace tandem
