#include <tandem/error.h>
#include <tandem/shard.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {

Shard shard_of(const World& world) { return {.rank = world.rank, .size = world.size}; }

IndexRange indices_of(const Shard& shard, std::int64_t num_samples) {
  if (shard.rank < 0 || shard.rank >= shard.size) {
    fail(ErrorKind::Config, str("shard: there is no rank ", shard.rank, " among ", shard.size),
         "take the shard of this process from shard_of(world)");
  }
  if (num_samples < 0) {
    fail(ErrorKind::Config, str("shard: of ", num_samples, " samples"), "count the samples first");
  }
  const std::int64_t share = num_samples / shard.size;
  const std::int64_t rest = num_samples % shard.size;
  const auto begin_of = [&](std::int64_t rank) { return rank * share + std::min(rank, rest); };
  return {begin_of(shard.rank), begin_of(shard.rank + 1)};
}

}  // namespace tandem
