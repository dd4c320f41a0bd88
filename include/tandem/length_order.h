#pragma once

#include <tandem/sampler.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

struct LengthOrderOptions {
  std::int64_t batch_size = 1;  // samples of similar length that stay together: a micro-batch, or a whole step, which
                                // balances the work of its ranks
  std::int64_t pool = 50;       // batches that are sorted together: more means less padding, fewer mixes better
};

// An order in which every `batch_size` samples have similar lengths, and batches come in random order: samples are
// shuffled, each pool of them is sorted by length and cut into batches, and the batches are shuffled. Samples that do
// not fill a batch come last. Depends only on the arguments.
std::vector<std::int64_t> length_order(std::span<const std::int64_t> lengths, const LengthOrderOptions& options,
                                       std::uint64_t seed, std::int64_t epoch);

// The same for a Sampler; sample i has length `lengths[i]`.
EpochOrder by_length(std::vector<std::int64_t> lengths, const LengthOrderOptions& options);

}  // namespace tandem
