#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// How the learning rate goes down after the warm-up, over the steps that are left.
enum class ScheduleKind {
  Constant,  // it stays
  Linear,
  Cosine,    // half a period
  Poly,      // (1 - share of the way) ^ power
  OneCycle,  // cosine up from a 25th of the peak, cosine down to the last step
};

inline std::vector<std::pair<std::string, ScheduleKind>> enum_names(ScheduleKind) {
  return {{"constant", ScheduleKind::Constant},
          {"linear", ScheduleKind::Linear},
          {"cosine", ScheduleKind::Cosine},
          {"poly", ScheduleKind::Poly},
          {"one-cycle", ScheduleKind::OneCycle}};
}

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::Cosine;
  std::int64_t warmup_steps = 0;
  double min_factor = 0;
  double power = 0.9;
};

template <class Visitor>
void visit_fields(ScheduleOptions& o, Visitor&& field) {
  field("schedule", o.kind, "how the learning rate goes down");
  field("warmup-steps", o.warmup_steps,
        "steps in which it goes up first; with one-cycle, 0 is three tenths of the run");
  field("min-factor", o.min_factor, "where it ends, as a share of the peak");
  field("power", o.power, "exponent of poly");
}
void validate(const ScheduleOptions& options);

// The learning rate of one step, the first of which is 0. It goes up in a line from 0 in step 0 to `peak` in step
// `warmup_steps`, then down to peak * min_factor, which it would reach in step `num_steps`: the numbers of
// torch.optim.lr_scheduler and of transformers' get_*_schedule_with_warmup. One-cycle reaches its end in the last step,
// as torch's does. A warm-up that is longer than the run is an Error.
double learning_rate(const ScheduleOptions& options, double peak, std::int64_t step, std::int64_t num_steps);

enum class ScaleLr { Off, Linear, Sqrt };

inline std::vector<std::pair<std::string, ScaleLr>> enum_names(ScaleLr) {
  return {{"off", ScaleLr::Off}, {"linear", ScaleLr::Linear}, {"sqrt", ScaleLr::Sqrt}};
}

struct LrScalingOptions {
  ScaleLr rule = ScaleLr::Off;
  std::int64_t reference_batch = 0;
};

template <class Visitor>
void visit_fields(LrScalingOptions& o, Visitor&& field) {
  field("scale-lr", o.rule, "how the learning rate follows the global batch");
  field("reference-batch", o.reference_batch, "the global batch that the learning rate was found with");
}
void validate(const LrScalingOptions& options);

// `lr` times global_batch / reference_batch, or times its root. The number of ranks plays no part: where the global
// batch stays, the learning rate stays.
double scaled_learning_rate(double lr, const LrScalingOptions& scaling, std::int64_t global_batch);

}  // namespace tandem
