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

void check_schedule(const OptimizeOptions& options, const TrainingOptions& training, std::int64_t steps_per_epoch) {
  const std::int64_t all = training.epochs * steps_per_epoch;
  learning_rate(options.schedule, options.lr, 0, std::min(training.max_steps.value_or(all), all));
}

}  // namespace tandem
