#include "recipe/cadence.h"

#include <tandem/error.h>

#include <cmath>

#include "base/check_range.h"
#include "base/json.h"
#include "base/text.h"

namespace tandem {

void validate(const CadenceOptions& o) {
  check_range("eval-every", o.eval_every, 0, kMostCount);
  check_range("patience", o.patience, 0, kMostCount);
  if (o.patience > 0 && o.eval_every == 0) {
    fail(ErrorKind::Config,
         str("patience is ", o.patience, ", but eval-every is 0: there is one evaluation, at the end"),
         "give --eval-every N, too");
  }
}

Cadence::Cadence(const CadenceOptions& options, Better better) : options_(options), better_(better) {}

bool Cadence::is_due(std::int64_t step, std::int64_t num_steps) const {
  return step == num_steps || (options_.eval_every > 0 && step % options_.eval_every == 0);
}

bool Cadence::record(std::int64_t step, double metric) {
  const bool is_better = !best_ || (better_ == Better::Lower ? metric < *best_ : metric > *best_);
  if (std::isnan(metric) || !is_better) {
    ++num_without_improvement_;
    return false;
  }
  best_ = metric;
  best_step_ = step;
  num_without_improvement_ = 0;
  return true;
}

bool Cadence::is_exhausted() const { return options_.patience > 0 && num_without_improvement_ >= options_.patience; }

std::string Cadence::why_exhausted() const {
  return str("--patience ", options_.patience, ": the best evaluation was at step ", best_step_);
}

std::string Cadence::state() const {
  return json_text(Json::Object{{"best", best_ ? Json(*best_) : Json()},
                                {"best_step", best_step_},
                                {"num_without_improvement", num_without_improvement_}});
}

void Cadence::load_state(const std::string& state) {
  const Json json = parse_json(state, "the state of the evaluations");
  const Json& best = json.at("best");
  best_ = best.is_null() ? std::nullopt : std::optional(best.as_double());
  best_step_ = json.at("best_step").as_integer();
  num_without_improvement_ = json.at("num_without_improvement").as_integer();
}

}  // namespace tandem
