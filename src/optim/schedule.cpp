#include <tandem/error.h>
#include <tandem/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr double kCycleStart = 1.0 / 25;  // of the peak; this and the next: defaults of torch's OneCycleLR
constexpr double kCycleRise = 0.3;        // of the run

void check_schedule_setting(bool is_right, const std::string& message, const std::string& hint) {
  if (!is_right) fail(ErrorKind::Config, message, hint);
}

double cosine(double progress) { return (1 + std::cos(std::numbers::pi * progress)) / 2; }

double height(const ScheduleOptions& options, double progress) {
  switch (options.kind) {
    case ScheduleKind::Constant: return 1;
    case ScheduleKind::Linear: return 1 - progress;
    case ScheduleKind::Poly: return std::pow(1 - progress, options.power);
    case ScheduleKind::Cosine:
    case ScheduleKind::OneCycle: return cosine(progress);
  }
  return 1;
}

double between(double low, double high, double share) { return low + (high - low) * share; }

}  // namespace

void validate(const ScheduleOptions& o) {
  check_range("warmup-steps", o.warmup_steps, 0, kMostCount);
  check_schedule_setting(o.min_factor >= 0 && o.min_factor <= 1,
                         str("min-factor is ", o.min_factor, "; it must be between 0 and 1"),
                         "it is a fraction of the peak, not a learning rate");
  check_schedule_setting(o.power > 0 && o.power <= kMostNumber, str("power is ", o.power, "; it must be above 0"),
                         "a typical value is 0.9");
}

double learning_rate(const ScheduleOptions& options, double peak, std::int64_t step, std::int64_t num_steps) {
  check_schedule_setting(step >= 0 && num_steps > 0,
                         str("learning rate: there is no step ", step, " in a run of ", num_steps, " steps"),
                         "steps are numbered from 0");
  check_schedule_setting(options.warmup_steps <= num_steps,
                         str("warmup-steps is ", options.warmup_steps, ", but the run has only ", num_steps, " steps"),
                         "lower --warmup-steps, or train longer");

  const auto now = static_cast<double>(step);
  const auto end = static_cast<double>(num_steps);
  const bool is_cycle = options.kind == ScheduleKind::OneCycle;
  const double rise = is_cycle && options.warmup_steps == 0 ? std::max(0.0, kCycleRise * end - 1)
                                                            : static_cast<double>(options.warmup_steps);
  if (now < rise) return peak * (is_cycle ? between(1, kCycleStart, cosine(now / rise)) : now / rise);

  const double fall = end - rise - (is_cycle ? 1 : 0);
  const double progress = step >= num_steps ? 1 : fall > 0 ? (now - rise) / fall : 0;
  return peak * between(options.min_factor, 1, height(options, progress));
}

void validate(const LrScalingOptions& o) {
  check_range("reference-batch", o.reference_batch, 0, kMostCount);
  check_schedule_setting(o.rule == ScaleLr::Off || o.reference_batch > 0,
                         str("scale-lr is set, but reference-batch is ", o.reference_batch),
                         "set --reference-batch N: the global batch size for which the learning rate was tuned");
}

double scaled_learning_rate(double lr, const LrScalingOptions& scaling, std::int64_t global_batch) {
  validate(scaling);
  if (scaling.rule == ScaleLr::Off) return lr;
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(scaling.reference_batch);
  return lr * (scaling.rule == ScaleLr::Linear ? ratio : std::sqrt(ratio));
}

}  // namespace tandem
