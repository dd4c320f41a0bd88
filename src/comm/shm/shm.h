#pragma once

#include <tandem/store.h>

#include <memory>

#include "comm/transport.h"

namespace tandem {

// The ranks of one host, which share memory. CPU tensors made by `empty` are reduced in place, others are copied in and
// out; CUDA tensors travel through pinned memory. Every rank calls it.
std::unique_ptr<Transport> make_shm(Store& store, const CommOptions& options);

}  // namespace tandem
