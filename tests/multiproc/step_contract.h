#pragma once

#include <tandem/communicator.h>
#include <tandem/precision.h>

#include <array>
#include <utility>

namespace tandem {

inline constexpr std::array kPrecisions = {std::pair("fp32", Precision::Fp32), std::pair("bf16", Precision::Bf16),
                                           std::pair("fp16", Precision::Fp16)};

// What train_step keeps on every device and over every transport, as facts that a GoogleTest can find false. All ranks
// call it, three at the most.
void check_step_contract(Communicator& comm);

}  // namespace tandem
