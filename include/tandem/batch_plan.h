#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

// How large one step is. Without a global batch or shards, it is whatever batch size, accumulation and ranks give.
struct BatchOptions {
  std::int64_t batch_size = 8;
  std::optional<std::int64_t> accumulate = {};
  std::optional<std::int64_t> global_batch = {};
  std::optional<std::int64_t> shards = {};
};

template <class Visitor>
void visit_fields(BatchOptions& o, Visitor&& field) {
  field("batch-size", o.batch_size, "samples of a micro-batch, on each rank");
  field("accumulate", o.accumulate, "micro-batches of a step, on each rank");
  field("global-batch", o.global_batch, "samples of a step, over all ranks; gives the accumulation");
  field("shards", o.shards, "micro-batches of a step over all ranks, for results that are the same bits on 1, 2 or 4");
}

void validate(const BatchOptions& options);

// The micro-batches of one step.
struct BatchPlan {
  std::int64_t batch_size = 1;
  std::int64_t accumulate = 1;  // micro-batches on each rank
  std::int64_t num_ranks = 1;
  bool is_exact = false;

  std::int64_t batches_per_step() const { return accumulate * num_ranks; }
  std::int64_t global_batch() const { return batch_size * batches_per_step(); }

  // "256 samples a step = 16 a micro-batch x 8 micro-batches x 2 ranks"
  std::string text() const;
};

// What does not fit is an Error that names what would.
BatchPlan plan_batch(const BatchOptions& options, int num_ranks);

}  // namespace tandem
