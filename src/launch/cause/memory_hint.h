#pragma once

#include <string>
#include <string_view>

#include "launch/cause/hint.h"

namespace tandem {

// Hint for a GPU that is out of memory; `text` is PyTorch's message.
std::string gpu_memory_hint(std::string_view text, const Circumstances& now);

// Hint for a rank, or a process of it, that was killed: by the kernel for memory, or by another process.
std::string killed_hint(const RankEnd& end, const Circumstances& now);

// Hint for a failed memory allocation on the host.
std::string host_memory_hint(const RankEnd& end, const Circumstances& now);

// Hint for a full /dev/shm, which data loader workers use to pass batches.
std::string shared_memory_hint(const Circumstances& now);

// "312 MiB", "1.5 GiB"
std::string size_text(Bytes size);

}  // namespace tandem
