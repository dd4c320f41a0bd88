#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// The decay of the learning rate after the warm-up.
enum class ScheduleKind {
  Constant,
  Linear,
  Cosine,    // half a period
  Poly,      // (1 - progress) ^ power
  OneCycle,  // cosine up from peak / 25, then cosine down
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
  field("schedule", o.kind, "learning rate schedule after the warm-up");
  field("warmup-steps", o.warmup_steps, "linear warm-up steps; with one-cycle, 0 means 30 % of the run");
  field("min-factor", o.min_factor, "final learning rate, as a fraction of the peak");
  field("power", o.power, "exponent of the poly schedule");
}
void validate(const ScheduleOptions& options);

// The learning rate of a step, counted from 0. It rises linearly from 0 at step 0 to `peak` at step `warmup_steps`,
// then decays to peak * min_factor, reached at step `num_steps`: the values of torch.optim.lr_scheduler and of
// transformers' get_*_schedule_with_warmup. OneCycle ends at the last step, as in torch. A warm-up longer than the run
// is an Error.
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
  field("scale-lr", o.rule, "scaling of the learning rate with the global batch size");
  field("reference-batch", o.reference_batch, "global batch size for which the learning rate was tuned");
}
void validate(const LrScalingOptions& options);

// `lr` times global_batch / reference_batch, or times its square root. It does not depend on the number of ranks, only
// on the global batch size.
double scaled_learning_rate(double lr, const LrScalingOptions& scaling, std::int64_t global_batch);

}  // namespace tandem
