#include "kernels/gpu_program.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <dlfcn.h>
#include <tandem/error.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/cuda_driver.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...

[[noreturn]] void fail_to(std::string_view action, std::string_view why) {
  fail(ErrorKind::Device, str("GPU kernels: cannot ", action, ": ", why),
       "check that torch is a CUDA build that fits the driver: python -c 'import torch; "
       "print(torch.cuda.is_available())'");
}

// A small library beside libtorch that is linked with NVRTC and the driver.
void* open_library() {
  Dl_info torch = {};
  ::dladdr(reinterpret_cast<void*>(&at::globalContext), &torch);
  const auto path = std::filesystem::path(torch.dli_fname).parent_path() / "libcaffe2_nvrtc.so";
  void* const library = ::dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) fail_to("load NVRTC", ::dlerror());
  return library;
}

// A function of NVRTC or of the driver. They return 0 on success.
template <class... Args>
int call(const char* name, Args... args) {
  static void* const kLibrary = open_library();
  const auto function = reinterpret_cast<int (*)(Args...)>(::dlsym(kLibrary, name));
  if (function == nullptr) fail_to(str("find ", name), ::dlerror());
  return function(args...);
}

void check(int code, std::string_view action) {
  if (code != 0) fail_to(action, str("error ", code));
}

std::string compile_log(void* program) {
  std::size_t size = 0;
  check(call("nvrtcGetProgramLogSize", program, &size), "compile");
  std::string log(size, '\0');
  check(call("nvrtcGetProgramLog", program, log.data()), "compile");
  return log;
}

std::string compile(const char* source, std::vector<std::string> options, int device) {
  options.push_back(
      str("--gpu-architecture=sm_", gpu_attribute(kCapabilityMajor, device), gpu_attribute(kCapabilityMinor, device)));
  options.emplace_back("--std=c++17");
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  void* program = nullptr;
  const char** const none = nullptr;
  check(call("nvrtcCreateProgram", &program, source, "tandem.cu", 0, none, none), "compile");
  if (call("nvrtcCompileProgram", program, static_cast<int>(words.size()), words.data()) != 0) {
    fail_to("compile", compile_log(program));
  }
  std::size_t size = 0;
  check(call("nvrtcGetCUBINSize", program, &size), "compile");
  std::string binary(size, '\0');
  check(call("nvrtcGetCUBIN", program, binary.data()), "compile");
  check(call("nvrtcDestroyProgram", &program), "compile");
  return binary;
}

// Of torch: part of its interface for compiled models, which needs no CUDA headers.
void* current_stream(int device) {
  static const auto kFunction =
      reinterpret_cast<int (*)(std::int32_t, void**)>(::dlsym(RTLD_DEFAULT, "aoti_torch_get_current_cuda_stream"));
  if (kFunction == nullptr) fail_to("find torch's stream", ::dlerror());
  void* stream = nullptr;
  check(kFunction(device, &stream), "find torch's stream");
  return stream;
}

}  // namespace

GpuProgram::GpuProgram(const char* source, std::vector<std::string> options)
    : source_(source), options_(std::move(options)) {}

void GpuProgram::start(const char* kernel, const LaunchShape& shape, torch::Device device, void** args) {
  const c10::DeviceGuard guard(device);
  void* const entry = function(kernel, device.index());
  void** const no_extra = nullptr;
  check(call("cuLaunchKernel", entry, shape.blocks[0], shape.blocks[1], 1U, shape.threads[0], shape.threads[1], 1U, 0U,
             current_stream(device.index()), args, no_extra),
        str("launch ", kernel));
}

// The backward pass runs on threads of its own.
void* GpuProgram::function(const char* kernel, int device) {
  const std::lock_guard lock(mutex_);
  void*& module = modules_[device];
  if (module == nullptr) {
    const std::string binary = compile(source_, options_, device);
    check(call("cuModuleLoadData", &module, binary.data()), "load a kernel");
  }
  void*& entry = functions_[{device, kernel}];
  if (entry == nullptr) check(call("cuModuleGetFunction", &entry, module, kernel), str("find ", kernel));
  return entry;
}

}  // namespace tandem
