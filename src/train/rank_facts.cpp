#include "train/rank_facts.h"

#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <ctime>

#include "base/cuda_driver.h"
#include "base/machine.h"
#include "base/text.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

int index_of(torch::Device device) { return device.has_index() ? device.index() : 0; }

torch::ScalarType type_of(Precision precision) {
  if (precision == Precision::Bf16) return torch::kBFloat16;
  return precision == Precision::Fp16 ? torch::kHalf : torch::kFloat;
}

// MKL and oneDNN choose by the hardware, torch's own kernels also by ATEN_CPU_CAPABILITY.
std::string hardware_level() {
  if (__builtin_cpu_supports("avx512bf16") != 0) return "avx512bf16";
  if (__builtin_cpu_supports("avx512f") != 0) return "avx512f";
  return __builtin_cpu_supports("avx2") != 0 ? "avx2" : "x86-64";
}

// The time that this thread has run.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// While it lives, torch computes on the calling thread alone.
class OneThread {
 public:
  OneThread() { torch::set_num_threads(1); }
  ~OneThread() { torch::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = torch::get_num_threads();
};

}  // namespace

std::string device_name(torch::Device device) { return device.is_cpu() ? cpu_name() : gpu_name(index_of(device)); }

std::string processor_text(torch::Device device) {
  return device.is_cpu() ? str(at::get_cpu_capability(), " on ", hardware_level()) : device_name(device);
}

std::string device_text(torch::Device device) {
  const std::string threads = device.is_cpu() ? str(", ", counted(torch::get_num_threads(), "thread")) : "";
  return str(device.str(), " (", device_name(device), threads, ")");
}

Bytes highest_memory(torch::Device device) {
  if (device.is_cpu()) return peak_memory();
  constexpr auto kAllPools = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  auto* allocator = c10::getDeviceAllocator(device.type());
  if (!allocator->initialized()) return {0};  // nothing was allocated
  const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(index_of(device)));
  return {static_cast<std::uint64_t>(stats.allocated_bytes.at(kAllPools).peak)};
}

ModelSize size_of(const torch::nn::Module& module, const Optimizer& optimizer, WireType wire) {
  ModelSize size;
  for (const torch::Tensor& parameter : detail::distinct_parameters(module)) {
    size.num_parameters += parameter.numel();
    size.weights.count += parameter.nbytes();
    if (!parameter.requires_grad()) continue;
    size.num_trainable += parameter.numel();
    size.gradients.count += parameter.nbytes();
  }
  for (const torch::Tensor& buffer : module.buffers()) size.weights.count += buffer.nbytes();
  for (const auto& [name, tensor] : optimizer.state()) size.optimizer.count += tensor.nbytes();
  // Gradients are views of the buckets; with a 16-bit wire type there is a copy of them.
  if (wire != WireType::Full) size.buckets.count = 2 * static_cast<std::uint64_t>(size.num_trainable);
  return size;
}

double measure_core_flops(Precision precision) {
  constexpr std::int64_t kSize = 256;
  constexpr double kFlops = 2.0 * kSize * kSize * kSize;
  constexpr double kLongEnough = 0.05;  // seconds
  const torch::NoGradGuard no_grad;
  const OneThread one_thread;
  const auto matrix = torch::full({kSize, kSize}, 0.5, type_of(precision));
  double best = 0;
  const double begin = thread_seconds();
  for (double last = begin; last - begin < kLongEnough;) {
    torch::mm(matrix, matrix);
    const double now = thread_seconds();
    best = std::max(best, kFlops / (now - last));
    last = now;
  }
  return best;
}

double count_cores(int local_ranks) {
  const double cores = static_cast<double>(usable_cores()) / threads_per_core();
  return std::min(static_cast<double>(torch::get_num_threads()), cores / local_ranks);
}

}  // namespace tandem
