#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

// The type of matrix multiplications. Weights, their gradients and the optimizer state stay in fp32.
enum class Precision { Auto, Fp32, Bf16, Fp16 };

inline std::vector<std::pair<std::string, Precision>> enum_names(Precision) {
  return {{"auto", Precision::Auto}, {"fp32", Precision::Fp32}, {"bf16", Precision::Bf16}, {"fp16", Precision::Fp16}};
}

std::string precision_name(Precision precision);  // "bf16"

// What the choice depends on. cuda_major 0: the CPU.
struct DeviceFacts {
  int cuda_major = 0;
  int cuda_minor = 0;
  bool cpu_has_bf16 = false;  // AVX512-BF16; every CPU with AMX has it
};

struct ChosenPrecision {
  Precision precision = Precision::Fp32;  // never Auto
  std::string why;                        // "a CPU with AVX512-BF16 accelerates bf16"
};

// Auto: bf16 if the hardware accelerates it (GPUs from Ampere on, CPUs with AVX512-BF16), fp16 with loss scaling on
// GPUs whose tensor cores do not support bf16 (V100, T4), otherwise fp32. A requested precision is kept; `why` says if
// it is slow on this device.
ChosenPrecision choose_precision(Precision wanted, const DeviceFacts& device);

}  // namespace tandem
