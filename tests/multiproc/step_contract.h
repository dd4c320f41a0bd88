#pragma once

#include <tandem/communicator.h>
#include <tandem/mixed_precision.h>

#include <array>
#include <utility>

namespace tandem {

inline constexpr std::array kPrecisions = {std::pair("fp32", Precision::Fp32), std::pair("bf16", Precision::Bf16),
                                           std::pair("fp16", Precision::Fp16)};

// GoogleTest checks of train_step that hold on every device and transport. All ranks call it, at most three.
void check_step_contract(Communicator& comm);

}  // namespace tandem
