#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <utility>

namespace tandem {

// As long as it lives, calls a function each time a backward pass has added to a parameter's `.grad`.
class GradientHook {
 public:
  GradientHook(const torch::autograd::Variable& parameter, std::function<void()> call)
      : accumulator_(torch::autograd::impl::grad_accumulator(parameter)),
        key_(accumulator_->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [call = std::move(call)](const auto& outputs, const auto& grads) {
              if (grads[0].defined()) call();  // a function may find late that it has none, as recompute does
              return outputs;
            }))) {}
  GradientHook(GradientHook&&) noexcept = default;
  GradientHook& operator=(GradientHook&&) = delete;
  ~GradientHook() {
    if (accumulator_) accumulator_->del_post_hook(key_);
  }

 private:
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(torch::autograd::Variable()));

  Accumulator accumulator_;  // the parameter itself holds it weakly only
  std::uintptr_t key_;
};

}  // namespace tandem
