#pragma once

#include <string>

namespace tandem {

// Queries of the CUDA driver through dlopen, without the CUDA headers. Devices are numbered as in torch. An Error of
// kind Device if there is no driver or no such GPU.
int gpu_attribute(int attribute, int index);  // CU_DEVICE_ATTRIBUTE_...
std::string gpu_name(int index);              // "Tesla T4"

}  // namespace tandem
