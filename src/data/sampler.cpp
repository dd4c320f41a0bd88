#include <tandem/error.h>
#include <tandem/sampler.h>

#include <algorithm>
#include <memory>

#include "base/nearest_multiples.h"
#include "base/text.h"
#include "data/permutation.h"

namespace tandem {
namespace {

constexpr std::int64_t kMaxSamples = std::int64_t{1} << 62;

// The micro-batches of a step that belong to the shard.
IndexRange checked_block(const SamplerOptions& o, const Shard& shard) {
  if (o.num_samples < (o.tail == Tail::Short ? 0 : 1)) {
    fail(ErrorKind::Data, str("sampler: the dataset has ", o.num_samples, " samples"), "check the path of the data");
  }
  if (o.batch_size < 1 || o.batches_per_step < 1 || o.batch_size > kMaxSamples / o.batches_per_step) {
    fail(ErrorKind::Config, str("sampler: batches_per_step is ", o.batches_per_step, " and batch_size ", o.batch_size),
         "both must be at least 1");
  }
  const IndexRange mine = indices_of(shard, o.batches_per_step);
  if (o.batches_per_step % shard.size != 0) {
    fail(ErrorKind::Config,
         str("sampler: ", o.batches_per_step, " micro-batches per step cannot be divided evenly among ", shard.size,
             " ranks"),
         str("use ", nearest_multiples(o.batches_per_step, shard.size),
             " micro-batches per step, or another number of ranks"));
  }
  return mine;
}

EpochOrder default_order(bool shuffle) {
  if (!shuffle) {
    return [](std::int64_t, std::uint64_t, std::int64_t) -> Order {
      return [](std::int64_t position) { return position; };
    };
  }
  return [](std::int64_t num_samples, std::uint64_t seed, std::int64_t epoch) -> Order {
    return
        [permutation = Permutation(num_samples, seed, epoch)](std::int64_t position) { return permutation[position]; };
  };
}

}  // namespace

Shard shard_of(const World& world) { return {.rank = world.rank, .size = world.size}; }

IndexRange indices_of(const Shard& shard, std::int64_t num_samples) {
  if (shard.rank < 0 || shard.rank >= shard.size) {
    fail(ErrorKind::Config, str("shard: rank ", shard.rank, " of ", shard.size, " does not exist"),
         "use shard_of(world)");
  }
  if (num_samples < 0) {
    fail(ErrorKind::Config, str("shard: num_samples is ", num_samples), "it must be at least 0");
  }
  const std::int64_t share = num_samples / shard.size;
  const std::int64_t rest = num_samples % shard.size;
  const auto begin_of = [&](std::int64_t rank) { return rank * share + std::min(rank, rest); };
  return {begin_of(shard.rank), begin_of(shard.rank + 1)};
}

Sampler::Sampler(const SamplerOptions& options, const Shard& shard, EpochOrder order)
    : options_(options),
      shard_(shard),
      mine_(checked_block(options, shard)),
      order_of_(order ? std::move(order) : default_order(options.shuffle)) {
  start_epoch(0);
}

std::int64_t Sampler::steps_per_epoch() const {
  const std::int64_t full = options_.num_samples / samples_per_step();
  const bool has_tail = options_.num_samples % samples_per_step() != 0;
  const bool is_dropped = options_.tail == Tail::Drop && full > 0;
  return full + (has_tail && !is_dropped ? 1 : 0);
}

std::vector<SampleBatch> Sampler::next() {
  std::vector<SampleBatch> batches;
  for (std::int64_t index = mine_.begin; index < mine_.end; ++index) {
    SampleBatch batch = batch_at(index);
    if (!batch.ids.empty()) batches.push_back(std::move(batch));
  }
  if (options_.num_samples == 0) return batches;
  current_epoch_ = epoch_;
  cursor_ += samples_per_step();
  is_epoch_end_ = cursor_ / samples_per_step() == steps_per_epoch();
  if (is_epoch_end_) start_epoch(epoch_ + 1);
  return batches;
}

SampleBatch Sampler::batch_at(std::int64_t index) const {
  const std::int64_t begin = cursor_ + index * options_.batch_size;
  const std::int64_t num_counted = std::clamp(options_.num_samples - begin, std::int64_t{0}, options_.batch_size);
  const std::int64_t size = options_.tail == Tail::Short ? num_counted : options_.batch_size;
  SampleBatch batch{.ids = {},
                    .num_counted = num_counted,
                    .index_in_step = index,
                    .index_in_epoch = cursor_ / options_.batch_size + index};
  for (std::int64_t i = 0; i < size; ++i) batch.ids.push_back(order_((begin + i) % options_.num_samples));
  return batch;
}

void Sampler::start_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  cursor_ = 0;
  order_ = order_of_(options_.num_samples, options_.seed, epoch);
}

void Sampler::set_state(const SamplerState& state) {
  if (state.seed != options_.seed) {
    fail(ErrorKind::Config,
         str("sampler: the state was saved with seed ", state.seed, ", this run has ", options_.seed),
         str("resume with --seed ", state.seed, ", or load only the weights with --resume weights"));
  }
  const bool has_step_left = state.cursor == 0 || state.cursor / samples_per_step() < steps_per_epoch();
  if (state.epoch < 0 || state.cursor < 0 || !(has_step_left || state.cursor < options_.num_samples)) {
    fail(ErrorKind::Config,
         str("sampler: the state is at sample ", state.cursor, " of epoch ", state.epoch, ", but the dataset has ",
             options_.num_samples, " samples"),
         "resume with the dataset that the state was saved with");
  }
  if (state.cursor % samples_per_step() != 0) {
    fail(ErrorKind::Config,
         str("sampler: the state was saved after ", state.cursor, " samples of epoch ", state.epoch,
             ", which is not a multiple of the ", samples_per_step(), " samples per step"),
         str("resume with the same number of samples per step as before, or with one that divides ", state.cursor));
  }
  start_epoch(has_step_left ? state.epoch : state.epoch + 1);
  if (has_step_left) cursor_ = state.cursor;
  current_epoch_ = epoch_;
  is_epoch_end_ = false;
}

Sampler evaluation_sampler(std::int64_t num_samples, std::int64_t batch_size, const World& world,
                           std::vector<std::int64_t> order) {
  EpochOrder positions;
  if (!order.empty()) {
    if (std::cmp_not_equal(order.size(), num_samples)) {
      fail(ErrorKind::Config, str("evaluation sampler: an order of ", order.size(), " for ", num_samples, " samples"),
           "give the sample at each position, or no order");
    }
    // Shared, since each rewind and each copy of the sampler asks for the order again.
    positions = [ids = std::make_shared<const std::vector<std::int64_t>>(std::move(order))](std::int64_t, std::uint64_t,
                                                                                            std::int64_t) -> Order {
      return [ids](std::int64_t position) { return (*ids)[position]; };
    };
  }
  return Sampler({.num_samples = num_samples,
                  .batch_size = batch_size,
                  .batches_per_step = world.size,
                  .shuffle = false,
                  .tail = Tail::Short},
                 shard_of(world), std::move(positions));
}

}  // namespace tandem
