#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "recipes/summarize/samples.h"

namespace tandem::summarize {

struct DialogueCounts {
  std::size_t train = 4000;
  std::size_t held_out = 256;
};

// `builtin:dialogues`: two people agree, line by line, on what to do, where and when, and the summary says it in one
// sentence: "Anna and Ben will read at the lake on Friday." Each slot is filled from a list, so the task is to copy
// words and to order them; no summary can be guessed. The samples depend on the seed alone. No combination of activity,
// place and time is in both sets, for any seeds.
SummarySets make_dialogues(std::uint64_t seed, const DialogueCounts& counts = {});

// The number of held-out samples whose activity, place and time together occur in a training sample.
std::size_t num_shared_plans(const SummarySets& sets);

}  // namespace tandem::summarize
