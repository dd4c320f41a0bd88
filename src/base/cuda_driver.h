#pragma once

#include <string>

namespace tandem {

// The CUDA driver, asked without torch's headers, which need those of CUDA. It numbers devices as torch does. No driver
// or no such GPU is an Error of kind Device.
int gpu_attribute(int attribute, int index);  // CU_DEVICE_ATTRIBUTE_...
std::string gpu_name(int index);              // "Tesla T4"

}  // namespace tandem
