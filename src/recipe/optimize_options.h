#pragma once

#include <tandem/accelerator_options.h>
#include <tandem/schedule.h>
#include <tandem/training.h>

#include <cstdint>

#include "recipe/cadence.h"

namespace tandem {

// How a recipe trains, whatever its optimizer, and how often it evaluates.
struct OptimizeOptions {
  double lr = 1e-3;
  double clip = 1;
  ScheduleOptions schedule = {};
  LrScalingOptions scaling = {};
  CadenceOptions cadence = {};
};

template <class Visitor>
void visit_fields(OptimizeOptions& o, Visitor&& field) {
  field("lr", o.lr, "peak learning rate");
  field("clip", o.clip, "gradient norm is clipped to this value; 0: off");
  field("", o.schedule, "optimization");
  field("", o.scaling, "optimization");
  field("", o.cadence, "optimization");
}
void validate(const OptimizeOptions& options);

// The options for a run of that length; call it before the run begins. A warm-up that is longer than the run is an
// Error; if it was proposed by a preset (RunPlace), it becomes a fifth of the run.
OptimizeOptions fit_schedule(OptimizeOptions options, const TrainingOptions& training, std::int64_t steps_per_epoch,
                             const RunPlace& place = {});

}  // namespace tandem
