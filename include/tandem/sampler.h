#pragma once

#include <tandem/shard.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// What becomes of the last step of an epoch, which the samples do not fill.
enum class Tail {
  Pad,    // filled from the beginning of the epoch's order, by samples that do not count
  Drop,   // left out
  Short,  // its batches are shorter, and a rank may have none: for evaluation
};

inline std::vector<std::pair<std::string, Tail>> enum_names(Tail) {
  return {{"pad", Tail::Pad}, {"drop", Tail::Drop}, {"short", Tail::Short}};
}

struct SamplerOptions {
  std::int64_t num_samples = 0;
  std::int64_t batch_size = 1;        // samples of a micro-batch
  std::int64_t batches_per_step = 1;  // micro-batches of a step, over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;
  Tail tail = Tail::Pad;
};

// A micro-batch, as ids of samples.
struct SampleBatch {
  std::vector<std::int64_t> ids;
  std::int64_t num_counted = 0;  // the first so many; the others fill the batch up, and no metric may count them
  std::int64_t index = 0;        // among the micro-batches of its step, over all ranks
  std::int64_t number = 0;       // among the micro-batches of its epoch, over all ranks

  friend bool operator==(const SampleBatch&, const SampleBatch&) = default;
};

// Where a run stands in its data, the same on every rank.
struct SamplerState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;  // samples of the epoch that steps have used, over all ranks

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

// The sample at each position 0 .. num_samples-1 of an epoch, each sample at one position.
using Order = std::function<std::int64_t(std::int64_t position)>;

// The order of an epoch. It depends on nothing but its arguments: every rank, and a run that resumes, asks again.
using EpochOrder = std::function<Order(std::int64_t num_samples, std::uint64_t seed, std::int64_t epoch)>;

// Which samples this rank works on, step by step and without an end. Step t of an epoch uses the next
// batch_size * batches_per_step positions of the epoch's order, and micro-batch m of it the next batch_size of those:
// how many ranks there are decides only who computes a micro-batch, never what is in it.
class Sampler {
 public:
  // The order is a permutation of (seed, epoch), or 0, 1, 2, ... without shuffle, unless `order` says another. The
  // number of ranks must divide batches_per_step.
  Sampler(const SamplerOptions& options, const Shard& shard, EpochOrder order = {});

  const SamplerOptions& options() const { return options_; }
  const Shard& shard() const { return shard_; }
  std::int64_t num_samples() const { return options_.num_samples; }
  std::int64_t steps_per_epoch() const;

  // The micro-batches of the next step that belong to this rank: of all of them the `rank`-th of `size` equal blocks.
  std::vector<SampleBatch> next();

  // Of the step that `next` gives. After the last step of an epoch it is the next one.
  std::int64_t epoch() const { return epoch_; }

  // A state may come from a run on another number of ranks, or with another number of samples a step if the cursor is
  // a multiple of it; otherwise it is an Error.
  SamplerState state() const { return {.seed = options_.seed, .epoch = epoch_, .cursor = cursor_}; }
  void set_state(const SamplerState& state);

 private:
  std::int64_t samples_per_step() const { return options_.batch_size * options_.batches_per_step; }
  SampleBatch batch_at(std::int64_t index) const;
  void start_epoch(std::int64_t epoch);

  SamplerOptions options_;
  Shard shard_;
  IndexRange mine_;  // micro-batches of each step
  EpochOrder order_of_;
  Order order_;
  std::int64_t epoch_ = 0;
  std::int64_t cursor_ = 0;
};

// A sampler for evaluation: every sample once, unshuffled, the last batch short. Batch k holds the positions
// k * batch_size .. (k + 1) * batch_size - 1 on any number of ranks. The sample at position p is order[p], or p if
// `order` is empty; num_samples may be 0.
Sampler evaluation_sampler(std::int64_t num_samples, std::int64_t batch_size, const World& world,
                           std::vector<std::int64_t> order = {});

}  // namespace tandem
