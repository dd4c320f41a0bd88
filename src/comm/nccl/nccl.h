#pragma once

#include <tandem/store.h>

#include <chrono>
#include <memory>

#include "comm/transport.h"

namespace tandem {

// Whether this build has NCCL, and this machine a GPU for it.
bool nccl_is_available();

// CUDA tensors between GPUs, on one host or several. Every rank calls it.
std::unique_ptr<Transport> make_nccl(Store& store, torch::Device device, std::chrono::milliseconds timeout);

}  // namespace tandem
