#pragma once

#include <tandem/batch_norm.h>
#include <torch/types.h>

#include <utility>

namespace tandem {

// A gather function in the saved data of an autograd node.
struct HeldGather : torch::CustomClassHolder {
  explicit HeldGather(StatisticsGather function) : gather(std::move(function)) {}

  static c10::IValue hold(const StatisticsGather& function) {
    return c10::IValue::make_capsule(c10::make_intrusive<HeldGather>(function));
  }
  static const StatisticsGather& of(const c10::IValue& held) {
    return c10::static_intrusive_pointer_cast<HeldGather>(held.toCapsule())->gather;
  }

  StatisticsGather gather;
};

}  // namespace tandem
