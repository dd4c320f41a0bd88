#pragma once

#include <tandem/world.h>

#include <cstdint>

namespace tandem {

// Which part of the data a rank works on.
struct Shard {
  int rank = 0;
  int size = 1;

  friend bool operator==(const Shard&, const Shard&) = default;
};

Shard shard_of(const World& world);

// begin, begin + 1, ... end - 1
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// The indices of `num_samples` samples that belong to the shard. Those of all ranks are disjoint, and together all; the
// first ranks have one more where the number does not divide evenly.
IndexRange indices_of(const Shard& shard, std::int64_t num_samples);

}  // namespace tandem
