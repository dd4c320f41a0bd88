#pragma once

#include <string>
#include <string_view>

#include "launch/hint.h"

namespace tandem {

// What to do when a GPU has no memory left; `text` is what torch says about it.
std::string gpu_memory_hint(std::string_view text, const Circumstances& now);

// When the machine has none left, or the rank was killed as if so.
std::string host_memory_hint(const RankEnd& end, const Circumstances& now);

// When /dev/shm, through which data loaders pass batches, is full.
std::string shared_memory_hint(const Circumstances& now);

// "312 MiB", "1.5 GiB"
std::string size_text(Bytes size);

}  // namespace tandem
