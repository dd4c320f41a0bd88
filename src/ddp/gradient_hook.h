#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <utility>

namespace tandem {

// Calls a function each time a backward pass has accumulated into `.grad` of a parameter; removed by its destructor.
class GradientHook {
 public:
  GradientHook(const torch::autograd::Variable& parameter, std::function<void()> call)
      : accumulator_(torch::autograd::impl::grad_accumulator(parameter)),
        key_(accumulator_->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [call = std::move(call)](const auto& outputs, const auto& grads) {
              if (grads[0].defined()) call();  // it may be undefined, for example from recompute
              return outputs;
            }))) {}
  GradientHook(GradientHook&&) noexcept = default;
  GradientHook& operator=(GradientHook&&) = delete;
  ~GradientHook() {
    if (accumulator_) accumulator_->del_post_hook(key_);
  }

 private:
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(torch::autograd::Variable()));

  Accumulator accumulator_;  // the parameter only holds a weak reference to it
  std::uintptr_t key_;
};

}  // namespace tandem
