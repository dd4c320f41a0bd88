#pragma once

#include <memory>

#include "comm/store.h"
#include "comm/transport.h"

namespace tandem {

// Collectives over shared memory, for ranks on one host. CPU tensors from `empty` are reduced in place, others are
// copied to shared memory and back; CUDA tensors are staged through pinned memory. Every rank calls it.
std::unique_ptr<Transport> make_shm(Store& store, const CommOptions& options);

}  // namespace tandem
