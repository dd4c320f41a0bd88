#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem {

// A c10d store for the ranks of one host, in the memory that they inherit from their launcher (base/run_memory.h).
// There is no server and no socket, so no other process can read or change it.
c10::intrusive_ptr<c10d::Store> make_memory_store(int memory_fd, std::chrono::milliseconds timeout);

}  // namespace tandem
