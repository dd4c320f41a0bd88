#include "train/compare_samples.h"

#include <tandem/error.h>

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/text.h"

namespace tandem {

void compare_samplers(const SampleSource& source, Communicator& comm) {
  const std::string mine = str("seed ", source.state().seed, ", ", source.num_samples, " samples and ",
                               source.steps_per_epoch, " steps an epoch");
  const std::vector<std::string> ranks = comm.all_gather_bytes(mine);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank] == ranks[0]) continue;
    fail(ErrorKind::Config,
         str("training: the sampler of rank 0 has ", ranks[0], ", that of rank ", rank, " has ", ranks[rank]),
         "create it with the same seed and sizes on every rank, only with another shard: "
         "accelerator.sampler(num_samples) does");
  }
}

bool compare_samples(std::span<const std::int64_t> ids, std::int64_t step, Communicator& comm) {
  const std::string_view mine(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
  const std::vector<std::string> ranks = comm.all_gather_bytes(mine);
  std::unordered_map<std::int64_t, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].empty()) continue;
    std::vector<std::int64_t> samples(ranks[rank].size() / sizeof(std::int64_t));
    std::memcpy(samples.data(), ranks[rank].data(), ranks[rank].size());
    for (const std::int64_t id : samples) {
      const std::size_t first = rank_of.emplace(id, rank).first->second;
      if (first == rank) continue;
      fail(ErrorKind::Data, str("step ", step, ": sample ", id, " is used by rank ", first, " and by rank ", rank),
           "give each rank its own shard: create its Sampler or Loader with shard_of(comm.world())");
    }
  }
  return !rank_of.empty();
}

}  // namespace tandem
