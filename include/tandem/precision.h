#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem {

// What matrices are multiplied in. Weights, their gradients and the optimizer stay in fp32.
enum class Precision { Auto, Fp32, Bf16, Fp16 };

inline std::vector<std::pair<std::string, Precision>> enum_names(Precision) {
  return {{"auto", Precision::Auto}, {"fp32", Precision::Fp32}, {"bf16", Precision::Bf16}, {"fp16", Precision::Fp16}};
}

std::string precision_name(Precision precision);  // "bf16"

// What the choice depends on. A GPU has a compute capability; a device without one is the CPU.
struct DeviceFacts {
  int cuda_major = 0;
  int cuda_minor = 0;
  bool cpu_has_bf16 = false;  // AVX512-BF16, which every CPU with AMX has too
};

struct ChosenPrecision {
  Precision precision = Precision::Fp32;  // never Auto
  std::string why;                        // "the CPU has AVX512-BF16"
};

// Auto is bf16 where the hardware multiplies it fast (GPUs from Ampere on, CPUs with AVX512-BF16), fp16 with loss
// scaling on GPUs whose tensor cores know no bf16 (V100, T4), else fp32. What was asked for is taken as it is; `why`
// then says where it is slow.
ChosenPrecision choose_precision(Precision wanted, const DeviceFacts& device);

}  // namespace tandem
