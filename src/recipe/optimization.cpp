#include "recipe/optimization.h"

#include <tandem/accelerator.h>

#include <cmath>
#include <utility>

#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

// "eval step 40 | loss 2.1034 | rouge1 0.3120", without counts.
std::string result_line(const EventFields& result, std::int64_t step) {
  std::string line = str("eval step ", step);
  for (const auto& [name, value] : result) {
    if (const auto* number = std::get_if<double>(&value)) line += str(" | ", name, ' ', fixed(*number, 4));
  }
  return line;
}

}  // namespace

OptimizeOptions fit_schedule(Accelerator& accelerator, const OptimizeOptions& options, std::int64_t steps_per_epoch,
                             const std::string& warmup) {
  RunPlace place;
  if (accelerator.place().proposes(warmup)) place.proposed = {"warmup-steps"};
  OptimizeOptions fitting = fit_schedule(options, accelerator.options().training, steps_per_epoch, place);
  const std::int64_t num_steps = fitting.schedule.warmup_steps;
  if (num_steps != options.schedule.warmup_steps) {
    accelerator.print(str("warm-up    ", counted(num_steps, "step"), ", a fifth of the run, instead of the ",
                          options.schedule.warmup_steps, " of the preset, which are more than it has"));
  }
  return fitting;
}

Optimization::Optimization(Accelerator& accelerator, const OptimizeOptions& options)
    : accelerator_(accelerator),
      options_(options),
      peak_lr_(scaled_learning_rate(options.lr, options.scaling, accelerator.batch_plan().global_batch())),
      cadence_(options.cadence, accelerator.options().training.retention.better),
      planned_{accelerator} {
  accelerator.register_for_checkpointing("evaluations", cadence_);
  accelerator.register_for_checkpointing("planned_steps", planned_);
}

std::string Optimization::PlannedSteps::state() const { return str(accelerator.num_steps()); }

void Optimization::PlannedSteps::load_state(const std::string& state) { before_resume = to_integer(state).value_or(0); }

// Known only now: a run is resumed before its steps are counted.
void Optimization::say_if_schedule_changed() {
  const std::int64_t before = std::exchange(planned_.before_resume, 0);
  const std::int64_t now = accelerator_.num_steps();
  if (before == 0 || before == now || options_.schedule.kind == ScheduleKind::Constant) return;
  accelerator_.print(str("schedule   the run was to end at step ", before, " and now ends at step ", now,
                         ": the learning rate follows the new length from step ", accelerator_.completed_steps() + 1,
                         " on"));
}

bool Optimization::step() {
  const std::int64_t num_steps = accelerator_.num_steps();
  if (planned_.before_resume > 0) say_if_schedule_changed();
  accelerator_.clip_grad_norm(options_.clip);
  if (!accelerator_.step(learning_rate(options_.schedule, peak_lr_, accelerator_.completed_steps(), num_steps)))
    return false;
  is_evaluated_ = false;
  return cadence_.is_due(accelerator_.completed_steps(), num_steps);
}

void Optimization::record(const EventFields& result, double metric) {
  const std::int64_t step = accelerator_.completed_steps();
  is_evaluated_ = true;
  accelerator_.log(result, "validation");
  if (std::isfinite(metric)) accelerator_.set_metric(metric);
  cadence_.record(step, metric);
  if (step == accelerator_.num_steps()) return;  // the end of the run prints and saves it
  accelerator_.print(result_line(result, step));
  accelerator_.save_state();
  if (cadence_.is_exhausted()) accelerator_.stop(cadence_.why_exhausted());
}

}  // namespace tandem
