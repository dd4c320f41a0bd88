#pragma once

#include <tandem/run_options.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>

namespace tandem {

DeviceFacts facts_of(torch::Device device);

// torch.autocast as a scope guard, for this thread and one device type; Fp32 disables autocast. Compute the loss
// inside, call backward() outside.
//
// The weight cache of autocast is disabled inside: a cached cast can become stale after an optimizer step, and a cast
// made under no_grad could be reused by a training pass. A weight that one forward pass uses twice is cast twice
// instead.
class [[nodiscard]] Autocast {
 public:
  Autocast(torch::DeviceType device, Precision precision);
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  torch::DeviceType device_;
  bool was_enabled_;
  torch::ScalarType type_before_;
  bool had_cache_;
};

struct LossScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

template <class Visitor>
void visit_fields(LossScalerOptions& o, Visitor&& field) {
  field("init-scale", o.init_scale, "initial loss scale");
  field("growth-factor", o.growth_factor, "factor of the scale after growth-interval steps without overflow");
  field("backoff-factor", o.backoff_factor, "factor of the scale after an overflow");
  field("growth-interval", o.growth_interval, "steps without overflow before the scale grows");
}
void validate(const LossScalerOptions& options);

struct LossScalerState {
  double scale = 0;
  std::int64_t growth_tracker = 0;  // steps without overflow since the last change of the scale
  std::int64_t normalizer = 0;      // 0: not set yet
};

// Dynamic loss scaling for fp16, as torch.amp.GradScaler: the loss is multiplied by a scale, gradients are divided by
// it, and the scale is halved after an overflow and grows again. For other precisions it is disabled.
//
//   scaler.scaled(loss_sum).backward();            for each micro-batch
//   const Tensor divisor = scaler.divisor(count);  number of samples over all ranks
//   const Tensor norm = global_norm(optimizer.gradients()) / divisor, overflow = found_inf(norm);
//   optimizer.update(lr, divisor / clip_coefficient(norm, max_norm), overflow);
//   scaler.update(overflow);
//
// `overflow` is computed from the reduced gradients, which are equal on every rank: all ranks skip the same steps and
// keep the same scale without communication.
//
// The gradients of a sum over n tokens are n times those of the mean. So the sum is divided by the normalizer, a power
// of two near the number of samples, which rounds nothing, and the scale means the same as in torch.
//
// Everything stays on the device; only `scale` and `state` synchronize with the host.
class LossScaler {
 public:
  LossScaler(Precision precision, torch::Device device, const LossScalerOptions& options = {});

  Precision precision() const { return precision_; }
  bool is_on() const { return scale_.defined(); }
  bool needs_normalizer() const { return is_on() && normalizer_ == 0; }

  // Call before the first backward pass, with the approximate number of samples (or tokens, as for `divisor`) per step
  // over all ranks, equal on every rank. Later calls, and calls after `load_state`, have no effect.
  void normalize_by(std::int64_t num_samples);

  // The loss times scale / normalizer, in fp32.
  torch::Tensor scaled(const torch::Tensor& loss_sum) const;

  // Divide the gradients of scaled sums by this to get those of the mean over `count` samples, a scalar of any type.
  torch::Tensor divisor(const torch::Tensor& count) const;

  // Call after every step; `found_inf`: 1 if the step was skipped because of an overflow, else 0.
  void update(const torch::Tensor& found_inf);

  double scale() const;

  // Empty if disabled. Loading an empty state, or loading when disabled, has no effect: a run may resume in another
  // precision.
  std::optional<LossScalerState> state() const;
  void load_state(const std::optional<LossScalerState>& state);

 private:
  torch::Tensor factor() const;

  Precision precision_;
  LossScalerOptions options_;
  std::int64_t normalizer_ = 0;
  torch::Tensor scale_;  // undefined: disabled
  torch::Tensor growth_tracker_;
};

}  // namespace tandem
