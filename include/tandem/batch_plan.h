#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

// The size of a step: batch size x accumulation x ranks, unless a global batch or shards are given.
struct BatchOptions {
  std::int64_t batch_size = 8;
  std::optional<std::int64_t> accumulate = {};
  std::optional<std::int64_t> global_batch = {};
  std::optional<std::int64_t> shards = {};
};

template <class Visitor>
void visit_fields(BatchOptions& o, Visitor&& field) {
  field("batch-size", o.batch_size, "samples per micro-batch");
  field("accumulate", o.accumulate, "gradient accumulation: micro-batches per step on each rank");
  field("global-batch", o.global_batch, "samples per step over all ranks; determines the accumulation");
  field("shards", o.shards, "exact mode: micro-batches per step over all ranks; the same bits on 1, 2 or 4 ranks");
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

// Sizes that do not divide evenly are an Error that names the nearest valid ones.
BatchPlan plan_batch(const BatchOptions& options, int num_ranks);

}  // namespace tandem
