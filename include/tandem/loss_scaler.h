#pragma once

#include <tandem/precision.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>

namespace tandem {

struct LossScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

template <class Visitor>
void visit_fields(LossScalerOptions& o, Visitor&& field) {
  field("init-scale", o.init_scale, "what the loss is multiplied by at first");
  field("growth-factor", o.growth_factor, "what the scale is multiplied by when all went well for a while");
  field("backoff-factor", o.backoff_factor, "what the scale is multiplied by after an overflow");
  field("growth-interval", o.growth_interval, "steps without an overflow after which the scale grows");
}
void validate(const LossScalerOptions& options);

struct LossScalerState {
  double scale = 0;
  std::int64_t growth_tracker = 0;  // steps since the last change of the scale
  std::int64_t normalizer = 0;      // 0: not told yet
};

// Keeps the gradients of fp16 activations within the range of that type: the loss is multiplied by a scale, gradients
// are divided by it again, and the scale follows what happens, as in torch.amp.GradScaler. For other precisions it is
// off, and does nothing.
//
//   scaled(loss_sum).backward();                 for each micro-batch
//   const Tensor divisor = scaler.divisor(count);  of all samples, after the reduction
//   const Tensor norm = global_norm(optimizer.gradients()) / divisor, overflow = found_inf(norm);
//   optimizer.update(lr, divisor / clip_coefficient(norm, max_norm), overflow);
//   scaler.update(overflow);
//
// `overflow` is found on reduced gradients, which are the same on every rank; so all ranks skip the same steps and keep
// the same scale without talking about it.
//
// A sum over thousands of tokens has gradients as many times those of a mean. So the sum is divided by the
// normalizer, a power of two near the number of samples, and the scale means what it means in torch. Powers of two
// round nothing.
//
// Everything stays on the device. `scale` and `state` are what the host waits for.
class LossScaler {
 public:
  LossScaler(Precision precision, torch::Device device, const LossScalerOptions& options = {});

  Precision precision() const { return precision_; }
  bool is_on() const { return scale_.defined(); }
  bool needs_normalizer() const { return is_on() && normalizer_ == 0; }

  // Before the first backward pass: about how many samples (or tokens: what `divisor` is given) a step has over all
  // ranks, the same number on each. Later calls change nothing, nor do those after a state was loaded.
  void normalize_by(std::int64_t num_samples);

  // The loss times scale / normalizer, in fp32.
  torch::Tensor scaled(const torch::Tensor& loss_sum) const;

  // What turns the gradients of scaled sums into those of the mean over `count` samples, a scalar of any type.
  torch::Tensor divisor(const torch::Tensor& count) const;

  // After every step, with 1 where it was skipped for its gradients, else 0.
  void update(const torch::Tensor& found_inf);

  double scale() const;

  // Nothing where it is off. Loading nothing, or into one that is off, changes nothing: a run may go on in another
  // precision.
  std::optional<LossScalerState> state() const;
  void load_state(const std::optional<LossScalerState>& state);

 private:
  torch::Tensor factor() const;

  Precision precision_;
  LossScalerOptions options_;
  std::int64_t normalizer_ = 0;
  torch::Tensor scale_;  // undefined: off
  torch::Tensor growth_tracker_;
};

}  // namespace tandem
