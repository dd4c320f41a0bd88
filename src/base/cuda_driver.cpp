#include "base/cuda_driver.h"

#include <dlfcn.h>
#include <tandem/error.h>

#include <array>

#include "base/text.h"

namespace tandem {
namespace {

// Calls a function of the driver; they return 0 on success.
template <class... Args>
bool call_driver(const char* name, Args... args) {
  static void* const kDriver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (kDriver == nullptr) return false;
  const auto function = reinterpret_cast<int (*)(Args...)>(::dlsym(kDriver, name));
  return function != nullptr && function(args...) == 0;
}

[[noreturn]] void fail_to_ask(int index) {
  fail(ErrorKind::Device, str("cannot query GPU ", index, " through the CUDA driver"),
       "check with nvidia-smi that the driver works");
}

}  // namespace

int gpu_attribute(int attribute, int index) {
  int value = 0;
  if (!call_driver("cuInit", 0U) || !call_driver("cuDeviceGetAttribute", &value, attribute, index)) fail_to_ask(index);
  return value;
}

std::string gpu_name(int index) {
  std::array<char, 256> name{};
  const int room = static_cast<int>(name.size());
  if (!call_driver("cuInit", 0U) || !call_driver("cuDeviceGetName", name.data(), room, index)) fail_to_ask(index);
  return name.data();
}

}  // namespace tandem
