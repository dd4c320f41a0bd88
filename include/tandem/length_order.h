#pragma once

#include <tandem/sampler.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct LengthOrderOptions {
  std::int64_t batch_size = 1;  // samples of like length that stay together: a micro-batch, or a step, so that all its
                                // ranks have equally much to do
  std::int64_t pool = 50;       // batches that are sorted together: more waste less padding, fewer mix samples better
};

// An order in which each `batch_size` samples are of like length, and batches follow each other at random: samples are
// shuffled, each pool of them sorted by length and cut into batches, and the batches shuffled. What does not fill a
// batch comes last. It depends on the arguments alone.
std::vector<std::int64_t> length_order(std::span<const std::int64_t> lengths, const LengthOrderOptions& options,
                                       std::uint64_t seed, std::int64_t epoch);

// The same for a Sampler, where sample i has length `lengths[i]`.
EpochOrder by_length(std::vector<std::int64_t> lengths, const LengthOrderOptions& options);

}  // namespace tandem
