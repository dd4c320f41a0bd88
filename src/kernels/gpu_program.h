#pragma once

#include <torch/types.h>

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tandem {

// How many blocks, and how many threads in each.
struct LaunchShape {
  std::array<unsigned, 2> blocks = {1, 1};
  std::array<unsigned, 2> threads = {1, 1};
};

// CUDA kernels (extern "C") that are compiled for a GPU when they are first used on it, by the NVRTC that torch brings
// along: Tandem is built without CUDA's compiler and headers. An Error of kind Device if that fails.
class GpuProgram {
 public:
  // `options` are those of NVRTC, such as "-DValue=Half".
  GpuProgram(const char* source, std::vector<std::string> options);

  // Starts a kernel on the device's current stream. The arguments must have exactly the types of its parameters.
  template <class... Args>
  void launch(const char* kernel, const LaunchShape& shape, torch::Device device, Args... args) {
    const std::array<void*, sizeof...(Args)> pointers = {&args...};
    start(kernel, shape, device, const_cast<void**>(pointers.data()));
  }

 private:
  void start(const char* kernel, const LaunchShape& shape, torch::Device device, void** args);
  void* function(const char* kernel, int device);

  const char* source_;
  std::vector<std::string> options_;
  std::mutex mutex_;
  std::map<int, void*> modules_;  // by device
  std::map<std::pair<int, const char*>, void*> functions_;
};

}  // namespace tandem
