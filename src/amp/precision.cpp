#include <tandem/run_options.h>

#include "base/text.h"

namespace tandem {
namespace {

bool is_gpu(const DeviceFacts& device) { return device.cuda_major > 0; }

bool is_fast(Precision precision, const DeviceFacts& device) {
  if (precision == Precision::Bf16) return is_gpu(device) ? device.cuda_major >= 8 : device.cpu_has_bf16;
  if (precision == Precision::Fp16) return device.cuda_major >= 7;
  return true;
}

std::string text(const DeviceFacts& device) {
  if (is_gpu(device)) return str("a GPU of compute capability ", device.cuda_major, '.', device.cuda_minor);
  return str("a CPU ", device.cpu_has_bf16 ? "with" : "without", " AVX512-BF16");
}

}  // namespace

std::string precision_name(Precision precision) {
  for (const auto& [name, value] : enum_names(precision)) {
    if (value == precision) return name;
  }
  return {};
}

ChosenPrecision choose_precision(Precision wanted, const DeviceFacts& device) {
  if (wanted != Precision::Auto) {
    return {wanted, str("requested", is_fast(wanted, device) ? "" : str("; slow on ", text(device)))};
  }
  if (is_fast(Precision::Bf16, device)) return {Precision::Bf16, str(text(device), " accelerates bf16")};
  if (is_fast(Precision::Fp16, device)) return {Precision::Fp16, str(text(device), " accelerates fp16, not bf16")};
  return {Precision::Fp32, str(text(device), " accelerates no 16-bit type")};
}

}  // namespace tandem
