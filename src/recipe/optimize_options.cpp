#include "recipe/optimize_options.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem {

void validate(const OptimizeOptions& o) {
  check_range("lr", o.lr, 0, kMostNumber);
  check_range("clip", o.clip, 0, kMostNumber);
}

OptimizeOptions fit_schedule(OptimizeOptions options, const TrainingOptions& training, std::int64_t steps_per_epoch,
                             const RunPlace& place) {
  const std::int64_t all = training.epochs * steps_per_epoch;
  const std::int64_t num_steps = std::min(training.max_steps.value_or(all), all);
  ScheduleOptions& schedule = options.schedule;
  if (schedule.warmup_steps > num_steps && place.proposes("warmup-steps")) schedule.warmup_steps = num_steps / 5;
  learning_rate(schedule, options.lr, 0, num_steps);  // an Error if it does not fit
  return options;
}

}  // namespace tandem
