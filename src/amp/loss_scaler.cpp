#include <tandem/error.h>
#include <tandem/mixed_precision.h>
#include <torch/types.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

void check(bool is_right, const std::string& message) {
  if (!is_right) fail(ErrorKind::Config, message, "leave it out to use the default");
}

bool is_valid(const LossScalerState& state) {
  return std::isfinite(state.scale) && state.scale > 0 && state.growth_tracker >= 0 && state.normalizer >= 0 &&
         std::popcount(static_cast<std::uint64_t>(state.normalizer)) <= 1;
}

}  // namespace

void validate(const LossScalerOptions& o) {
  check(o.init_scale > 0, str("init-scale is ", o.init_scale, "; it must be above 0"));
  check(o.growth_factor > 1, str("growth-factor is ", o.growth_factor, "; it must be above 1"));
  check(o.backoff_factor > 0 && o.backoff_factor < 1,
        str("backoff-factor is ", o.backoff_factor, "; it must be between 0 and 1"));
  check(o.growth_interval > 0, str("growth-interval is ", o.growth_interval, "; it must be above 0"));
}

LossScaler::LossScaler(Precision precision, torch::Device device, const LossScalerOptions& options)
    : precision_(precision), options_(options) {
  validate(options_);
  if (precision != Precision::Fp16) return;
  scale_ = torch::full({}, options.init_scale, torch::device(device).dtype(torch::kFloat));
  growth_tracker_ = torch::zeros({}, torch::device(device).dtype(torch::kInt));
}

void LossScaler::normalize_by(std::int64_t num_samples) {
  if (normalizer_ != 0 || num_samples < 1) return;
  normalizer_ = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(num_samples)));
}

Tensor LossScaler::scaled(const Tensor& loss_sum) const {
  if (!is_on()) return loss_sum;
  return loss_sum.to(torch::kFloat) * factor();
}

Tensor LossScaler::divisor(const Tensor& count) const {
  const Tensor samples = count.to(torch::kFloat);
  return is_on() ? samples * factor() : samples;
}

void LossScaler::update(const Tensor& found_inf) {
  if (!is_on()) return;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
}

Tensor LossScaler::factor() const { return scale_ / std::max<std::int64_t>(normalizer_, 1); }

double LossScaler::scale() const { return is_on() ? scale_.item<double>() : 1; }

std::optional<LossScalerState> LossScaler::state() const {
  if (!is_on()) return std::nullopt;
  return LossScalerState{
      .scale = scale(), .growth_tracker = growth_tracker_.item<std::int64_t>(), .normalizer = normalizer_};
}

void LossScaler::load_state(const std::optional<LossScalerState>& state) {
  if (!is_on() || !state) return;
  if (!is_valid(*state)) {
    fail(ErrorKind::Checkpoint,
         str("loss scaler: invalid state: scale ", state->scale, ", growth_tracker ", state->growth_tracker,
             ", normalizer ", state->normalizer),
         "use another checkpoint");
  }
  scale_.fill_(state->scale);
  growth_tracker_.fill_(state->growth_tracker);
  normalizer_ = state->normalizer;
}

}  // namespace tandem
