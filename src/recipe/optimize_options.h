#pragma once

#include <tandem/optimizer.h>
#include <tandem/schedule.h>
#include <tandem/training.h>

#include <cstdint>

#include "recipe/cadence.h"

namespace tandem {

// How a recipe trains with AdamW, and how often it evaluates.
struct OptimizeOptions {
  double lr = 1e-3;
  double clip = 1;
  AdamWOptions adamw = {};
  ScheduleOptions schedule = {};
  LrScalingOptions scaling = {};
  CadenceOptions cadence = {};
};

template <class Visitor>
void visit_fields(OptimizeOptions& o, Visitor&& field) {
  field("lr", o.lr, "peak learning rate");
  field("clip", o.clip, "gradient norm is clipped to this value; 0: off");
  field("", o.adamw, "optimization");
  field("", o.schedule, "optimization");
  field("", o.scaling, "optimization");
  field("", o.cadence, "optimization");
}
void validate(const OptimizeOptions& options);

// An Error if the warm-up is longer than the run; call it before the run begins.
void check_schedule(const OptimizeOptions& options, const TrainingOptions& training, std::int64_t steps_per_epoch);

}  // namespace tandem
