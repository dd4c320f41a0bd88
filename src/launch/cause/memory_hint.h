#pragma once

#include <string>
#include <string_view>

#include "launch/cause/hint.h"

namespace tandem {

// What to do when a GPU has no memory left; `text` is what torch says about it.
std::string gpu_memory_hint(std::string_view text, const Circumstances& now);

// When a rank, or a process of it, was killed: by the kernel for memory, or by someone else.
std::string killed_hint(const RankEnd& end, const Circumstances& now);

// When the machine gives it no more memory.
std::string host_memory_hint(const RankEnd& end, const Circumstances& now);

// When /dev/shm, through which data loaders pass batches, is full.
std::string shared_memory_hint(const Circumstances& now);

// "312 MiB", "1.5 GiB"
std::string size_text(Bytes size);

}  // namespace tandem
