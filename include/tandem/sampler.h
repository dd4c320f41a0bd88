#pragma once

#include <tandem/world.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// The part of 0 .. num_samples-1 that belongs to the shard. The parts of all ranks are disjoint and cover everything;
// if the number does not divide evenly, the first ranks have one more.
IndexRange indices_of(const Shard& shard, std::int64_t num_samples);

// What happens to the last step of an epoch if there are not enough samples to fill it.
enum class Tail {
  Drop,   // left out, so that every step has the same number of samples; if it is the only step, as Pad
  Pad,    // filled with samples from the beginning of the epoch, which do not count
  Short,  // its batches are shorter, and a rank may have none: for evaluation
};

inline std::vector<std::pair<std::string, Tail>> enum_names(Tail) {
  return {{"drop", Tail::Drop}, {"pad", Tail::Pad}, {"short", Tail::Short}};
}

struct SamplerOptions {
  std::int64_t num_samples = 0;
  std::int64_t batch_size = 1;        // samples per micro-batch
  std::int64_t batches_per_step = 1;  // micro-batches per step, over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;
  Tail tail = Tail::Drop;
};

// A micro-batch, as sample ids.
struct SampleBatch {
  std::vector<std::int64_t> ids;
  std::int64_t num_counted = 0;     // metrics count only the first num_counted; the others are padding
  std::int64_t index_in_step = 0;   // among the micro-batches of all ranks
  std::int64_t index_in_epoch = 0;  // likewise

  friend bool operator==(const SampleBatch&, const SampleBatch&) = default;
};

// Position in the data, the same on every rank.
struct SamplerState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t cursor = 0;  // samples of the epoch used so far, over all ranks

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

// The sample at each position 0 .. num_samples-1 of an epoch; every sample has one position.
using Order = std::function<std::int64_t(std::int64_t position)>;

// The order of an epoch. It may depend on its arguments only, since every rank calls it, and a resumed run again.
using EpochOrder = std::function<Order(std::int64_t num_samples, std::uint64_t seed, std::int64_t epoch)>;

// The samples of this rank, step by step, epoch after epoch. Step t of an epoch uses the next
// batch_size * batches_per_step positions of the epoch's order, and its micro-batch m the next batch_size of those. The
// number of ranks decides only which rank computes a micro-batch, not what it contains.
class Sampler {
 public:
  // The order of an epoch is `order`, or a permutation that depends on (seed, epoch), or 0, 1, 2, ... without shuffle.
  // batches_per_step must be a multiple of the number of ranks.
  Sampler(const SamplerOptions& options, const Shard& shard, EpochOrder order = {});

  const SamplerOptions& options() const { return options_; }
  const Shard& shard() const { return shard_; }
  std::int64_t num_samples() const { return options_.num_samples; }
  std::int64_t steps_per_epoch() const;

  // This rank's micro-batches of the next step: block `rank` of `size` equal blocks.
  std::vector<SampleBatch> next();

  // Of the step that `next` returned last; before the first, the epoch that it begins or resumes in.
  std::int64_t epoch() const { return current_epoch_; }
  bool is_epoch_end() const { return is_epoch_end_; }

  // Where `next` continues. A state may come from a run on another number of ranks. It may come from one with another
  // number of samples per step if the cursor is a multiple of this one's; otherwise it is an Error. If the rest of its
  // epoch fills no step and is dropped, `next` continues with the epoch after.
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
  std::int64_t epoch_ = 0;  // of the next step
  std::int64_t cursor_ = 0;
  std::int64_t current_epoch_ = 0;
  bool is_epoch_end_ = false;
};

// A sampler for evaluation: every sample once, unshuffled, the last batch short. Batch k holds the positions
// k * batch_size .. (k + 1) * batch_size - 1 on any number of ranks. The sample at position p is order[p], or p if
// `order` is empty; num_samples may be 0.
Sampler evaluation_sampler(std::int64_t num_samples, std::int64_t batch_size, const World& world,
                           std::vector<std::int64_t> order = {});

struct LengthOrderOptions {
  std::int64_t batch_size = 1;  // samples of similar length that stay together: a micro-batch, or a whole step, which
                                // balances the work of its ranks
  std::int64_t pool = 50;       // most batches that are sorted together: more means less padding, fewer mixes better
};

// An order in which every `batch_size` samples have similar lengths, and batches come in random order: samples are
// shuffled, each pool of them is sorted by length and cut into batches, and the batches are shuffled. There are at
// least two pools, since the batches of a single one would be the same in every epoch. The samples that are left over,
// too few for a batch, come last; they are of any length. Depends only on the arguments.
std::vector<std::int64_t> length_order(std::span<const std::int64_t> lengths, const LengthOrderOptions& options,
                                       std::uint64_t seed, std::int64_t epoch);

// The same for a Sampler; sample i has length `lengths[i]`.
EpochOrder by_length(std::vector<std::int64_t> lengths, const LengthOrderOptions& options);

}  // namespace tandem
