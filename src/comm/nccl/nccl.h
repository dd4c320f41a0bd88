#pragma once

#include <chrono>
#include <memory>

#include "comm/store.h"
#include "comm/transport.h"

namespace tandem {

// True if this build has NCCL and this machine has a GPU.
bool nccl_is_available();

// Collectives of CUDA tensors by c10d's ProcessGroupNCCL, on one host or several. Every rank calls it.
std::unique_ptr<Transport> make_nccl(Store& store, torch::Device device, std::chrono::milliseconds timeout);

}  // namespace tandem
