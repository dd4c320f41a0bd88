#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "text/samples.h"

namespace tandem {

struct DialogueCounts {
  std::size_t train = 4000;
  std::size_t held_out = 256;
};

// `builtin:dialogues`: two people agree, line by line, on what to do, where and when, and the summary says it in one
// sentence: "Anna and Ben will read at the lake on Friday." Each slot is filled from a list, so copying and putting in
// order is all there is to learn, and no summary can be guessed. The seed alone decides the samples. What is done where
// and when in a held-out sample is so in no training sample, of this seed or any other, whoever does it.
SummarySets make_dialogues(std::uint64_t seed, const DialogueCounts& counts = {});

// How many of the held-out samples have a plan (what, where and when) that a training sample has.
std::size_t num_shared_plans(const SummarySets& sets);

}  // namespace tandem
