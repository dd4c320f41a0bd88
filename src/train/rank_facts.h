#pragma once

#include <tandem/ddp.h>
#include <tandem/optimizer.h>
#include <tandem/run_options.h>
#include <tandem/units.h>
#include <torch/types.h>

#include <string>

#include "monitor/model_size.h"

namespace tandem {

std::string device_name(torch::Device device);  // "Tesla T4", "AMD EPYC 7B13"
std::string device_text(torch::Device device);  // "cuda:0 (Tesla T4)", "cpu (AMD EPYC 7B13, 2 threads)"

// What decides which kernels torch and its libraries choose, and so the bits: "AVX2 on avx512f", "Tesla T4".
std::string processor_text(torch::Device device);

// Peak memory of this rank: on a GPU what torch's allocator has allocated, on a CPU that of the process.
Bytes highest_memory(torch::Device device);

// The memory of a rank for training the module.
ModelSize size_of(const torch::nn::Module& module, const Optimizer& optimizer, WireType wire = WireType::Full);

// Floating-point operations a second of matrix products on one core: the best of 50 ms, on the clock of
// this thread, so that other programs on the core do not count. Draws no random numbers.
double measure_core_flops(Precision precision);

// Cores of this rank's threads. Those of a core that share its arithmetic units, and ranks that share it, count as
// parts.
double count_cores(int local_ranks);

}  // namespace tandem
