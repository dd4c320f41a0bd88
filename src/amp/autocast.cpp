#include <ATen/autocast_mode.h>
#include <tandem/error.h>
#include <tandem/mixed_precision.h>
#include <torch/types.h>

#include "base/cuda_driver.h"

namespace tandem {
namespace {

torch::ScalarType type_of(Precision precision, torch::ScalarType otherwise) {
  if (precision == Precision::Bf16) return torch::kBFloat16;
  return precision == Precision::Fp16 ? torch::kHalf : otherwise;
}

}  // namespace

DeviceFacts facts_of(torch::Device device) {
  if (!device.is_cuda()) return {.cpu_has_bf16 = __builtin_cpu_supports("avx512bf16") != 0};
  constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
  const int index = device.has_index() ? device.index() : 0;
  return {.cuda_major = gpu_attribute(kCapabilityMajor, index), .cuda_minor = gpu_attribute(kCapabilityMinor, index)};
}

Autocast::Autocast(torch::DeviceType device, Precision precision)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      type_before_(at::autocast::get_autocast_dtype(device)),
      had_cache_(at::autocast::is_autocast_cache_enabled()) {
  if (precision == Precision::Auto) {
    fail(ErrorKind::Config, "autocast: auto is not a precision",
         "pass choose_precision(wanted, facts_of(device)).precision");
  }
  at::autocast::set_autocast_enabled(device, precision != Precision::Fp32);
  at::autocast::set_autocast_dtype(device, type_of(precision, type_before_));
  at::autocast::set_autocast_cache_enabled(false);
}

Autocast::~Autocast() {
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_cache_enabled(had_cache_);
}

}  // namespace tandem
