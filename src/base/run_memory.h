#pragma once

#include <cstddef>
#include <optional>

#include "base/fd.h"
#include "base/worker_env.h"

namespace tandem {

// Memory that the ranks of one host share: a file without a name (memfd), which the launcher creates for each attempt
// and the ranks inherit (TANDEM_MEMORY). No path leads to it, so other users cannot reach it. It begins with the log of
// the store (kStoreLogSize bytes), then comes the arena of the collectives.
constexpr std::size_t kStoreLogSize = std::size_t{64} << 20;

// Close-on-exec. An Error of kind Launch if the kernel refuses it.
Fd create_run_memory();

// The descriptor that this rank has inherited, if all ranks of the run are on this host. Nothing if the number is
// another file now: the program may have closed it.
std::optional<int> inherited_memory(const WorkerEnv& env);

// Makes the file at least `size` bytes long. Any number of ranks may do so at the same time. False on failure; errno
// says why.
bool grow_run_memory(int fd, std::size_t size);

// A memfd whose descriptor is large enough not to meet those that shell scripts open. Empty on failure.
Fd create_memory_file(const char* name);

}  // namespace tandem
