#include <tandem/error.h>
#include <tandem/optimizer.h>
#include <torch/nn/module.h>

#include <optional>
#include <utility>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

void check_setting(bool is_right, const std::string& message) {
  if (!is_right) fail(ErrorKind::Config, message, "leave it out to use the default");
}

std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

void validate(const AdamWOptions& o) {
  check_setting(o.beta1 >= 0 && o.beta1 < 1, str("beta1 is ", o.beta1, "; it must be at least 0 and below 1"));
  check_setting(o.beta2 >= 0 && o.beta2 < 1, str("beta2 is ", o.beta2, "; it must be at least 0 and below 1"));
  check_range("eps", o.eps, 0, kMostNumber);
  check_range("weight-decay", o.weight_decay, 0, kMostNumber);
}

AdamW::AdamW(const torch::nn::Module& module, const AdamWOptions& options)
    : AdamW(decay_groups(module, options.weight_decay), options) {}

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : Optimizer(std::move(groups), {{.name = "exp_avg"}, {.name = "exp_avg_sq"}, {.name = "step", .is_count = true}}),
      options_(options) {
  validate(options_);
}

void AdamW::call_kernel(const Update& update) {
  const auto& means = update.slots[0];
  const auto& squares = update.slots[1];
  const auto& steps = update.slots[2];
  if (update.found_inf.defined()) {
    at::_foreach_add_(steps, 1 - update.found_inf);
  } else {
    at::_foreach_add_(steps, 1);
  }
  at::_fused_adamw_(update.parameters, update.gradients, means, squares, {}, steps, update.lr,
                    update.momentum.value_or(options_.beta1), options_.beta2, update.weight_decay, options_.eps,
                    /*amsgrad=*/false, /*maximize=*/false, if_defined(update.divisor), if_defined(update.found_inf));
}

void validate(const SgdOptions& o) {
  check_setting(o.momentum >= 0 && o.momentum < 1,
                str("momentum is ", o.momentum, "; it must be at least 0 and below 1"));
  check_setting(!o.nesterov || o.momentum > 0, "nesterov is set, but momentum is 0");
  check_range("weight-decay", o.weight_decay, 0, kMostNumber);
}

Sgd::Sgd(const torch::nn::Module& module, const SgdOptions& options)
    : Sgd(decay_groups(module, options.weight_decay), options) {}

Sgd::Sgd(std::vector<ParameterGroup> groups, const SgdOptions& options)
    : Optimizer(std::move(groups),
                options.momentum > 0 ? std::vector<Slot>{{.name = "momentum_buffer"}} : std::vector<Slot>{}),
      options_(options) {
  validate(options_);
}

// Torch's first step copies the gradient into the momentum buffer. A zero buffer gives the same result, also if the
// first step is skipped.
void Sgd::call_kernel(const Update& update) {
  const double momentum = update.momentum.value_or(options_.momentum);
  check_setting(momentum == 0 || !update.slots.empty(),
                "a parameter group has momentum, but the optimizer was created without momentum");
  at::_fused_sgd_(update.parameters, update.gradients, update.slots.empty() ? at::TensorList() : update.slots[0],
                  update.weight_decay, momentum, update.lr, /*dampening=*/0, options_.nesterov,
                  /*maximize=*/false, /*is_first_step=*/false, if_defined(update.divisor),
                  if_defined(update.found_inf));
}

}  // namespace tandem
