#include <tandem/communicator.h>
#include <tandem/error.h>
#include <tandem/evaluation.h>

#include <algorithm>

#include "base/text.h"

namespace tandem::detail {
namespace {

void check_samples(const SamplerOptions& samples, const Shard& shard, const World& world) {
  constexpr const char* kHint = "create the sampler with evaluation_sampler(num_samples, batch_size, comm.world())";
  if (samples.tail != Tail::Short) {
    fail(ErrorKind::Config, "evaluate: the sampler pads or drops its last batch instead of making it short", kHint);
  }
  if (shard != shard_of(world)) {
    fail(ErrorKind::Config,
         str("evaluate: the sampler is for rank ", shard.rank, " of ", shard.size, ", but this is rank ", world.rank,
             " of ", world.size),
         kHint);
  }
}

}  // namespace

EvaluationRounds::EvaluationRounds(const Communicator& comm, const SamplerOptions& samples, const Shard& shard,
                                   std::int64_t num_rounds, EvaluationOptions options)
    : options_(std::move(options)),
      is_main_(comm.world().is_main()),
      num_samples_(samples.num_samples),
      samples_per_round_(samples.batch_size * samples.batches_per_step),
      num_rounds_(num_rounds) {
  check_samples(samples, shard, comm.world());
}

void EvaluationRounds::end_round() {
  ++round_;
  call_after_round();
  if (is_main_ && options_.on_progress) {
    options_.on_progress(std::min(num_samples_, round_ * samples_per_round_), num_samples_);
  }
}

void EvaluationRounds::call_after_round() const {
  if (options_.after_round) options_.after_round();
}

}  // namespace tandem::detail
