#include <tandem/config.h>
#include <tandem/error.h>
#include <tandem/run_options.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/check_range.h"
#include "base/nearest_multiples.h"
#include "base/text.h"

namespace tandem {
namespace {

// So that the samples of a step can be counted, whatever the number of ranks.
void check_product(const BatchOptions& options, const std::optional<std::int64_t>& factor, const char* name) {
  if (!factor || options.batch_size <= kMostCount / *factor) return;
  fail(ErrorKind::Config,
       str("batch-size is ", options.batch_size, " and ", name, ' ', *factor, ": too many samples a step"),
       str("their product may be at most ", kMostCount));
}

void check_together(const BatchOptions& options) {
  const bool is_accumulating = options.accumulate.has_value();
  if (is_accumulating && options.shards) {
    fail(ErrorKind::Config, "both --accumulate and --shards are given",
         "leave out --accumulate: a rank accumulates its shards");
  }
  if (is_accumulating && options.global_batch) {
    fail(ErrorKind::Config, "both --accumulate and --global-batch are given",
         "leave out --accumulate: it follows from the global batch");
  }
}

std::int64_t accumulation_of(std::int64_t global_batch, std::int64_t batch_size, int num_ranks) {
  const std::int64_t unit = batch_size * num_ranks;
  if (global_batch % unit != 0) {
    fail(ErrorKind::Config,
         str("a global batch of ", global_batch, " is no multiple of ", batch_size, " x ", num_ranks,
             " (batch size x ranks)"),
         str("use --global-batch ", nearest_multiples(global_batch, unit), ", or another --batch-size"));
  }
  return global_batch / unit;
}

// Each rank sums its shards before the sum over ranks. The bits are the same only if its shards are a subtree.
bool is_subtree(std::int64_t num_shards, std::int64_t num_ranks) {
  if (num_shards % num_ranks != 0) return false;
  return num_ranks == 1 || std::has_single_bit(static_cast<std::uint64_t>(num_shards / num_ranks));
}

std::int64_t shards_per_rank(std::int64_t num_shards, int num_ranks) {
  if (is_subtree(num_shards, num_ranks)) return num_shards / num_ranks;
  std::vector<std::string> fits;
  constexpr std::int64_t kMostRanks = 4096;
  for (std::int64_t ranks = 1; ranks <= std::min(num_shards, kMostRanks); ++ranks) {
    if (is_subtree(num_shards, ranks)) fits.push_back(str(ranks));
  }
  fail(ErrorKind::Config, str(num_shards, " shards cannot be split over ", num_ranks, " ranks without changing bits"),
       str("use ", join_some(fits, ", "), " ranks, or --shards ", num_ranks, " times a power of two"));
}

}  // namespace

std::string BatchPlan::text() const {
  return str(global_batch(), " samples a step = ", batch_size, " a micro-batch x ", accumulate,
             accumulate == 1 ? " micro-batch x " : " micro-batches x ", num_ranks, num_ranks == 1 ? " rank" : " ranks",
             is_exact ? ", exact" : "");
}

void validate(const BatchOptions& options) {
  check_range("batch-size", options.batch_size, 1, kMostCount);
  check_range("accumulate", options.accumulate.value_or(1), 1, kMostCount);
  check_range("global-batch", options.global_batch.value_or(1), 1, kMostCount);
  check_range("shards", options.shards.value_or(1), 1, kMostCount);
  check_product(options, options.accumulate, "accumulate");
  check_product(options, options.shards, "shards");
  check_together(options);
}

std::vector<GivesWay> gives_way(const BatchOptions&) {
  return {{.name = "global-batch", .to = {"accumulate", "shards"}}};
}

BatchOptions with_fitting_batch(BatchOptions options, int num_ranks) {
  if (!options.global_batch || options.shards) return options;
  validate(options);
  const std::int64_t unit = options.batch_size * num_ranks;
  options.global_batch = std::max<std::int64_t>((*options.global_batch + unit / 2) / unit, 1) * unit;
  return options;
}

BatchPlan plan_batch(const BatchOptions& options, int num_ranks) {
  validate(options);
  BatchPlan plan{.batch_size = options.batch_size, .num_ranks = num_ranks};
  if (options.shards) {
    plan.is_exact = true;
    plan.accumulate = shards_per_rank(*options.shards, num_ranks);
  } else if (options.global_batch) {
    plan.accumulate = accumulation_of(*options.global_batch, options.batch_size, num_ranks);
  } else {
    plan.accumulate = options.accumulate.value_or(1);
  }
  if (options.global_batch && plan.global_batch() != *options.global_batch) {
    fail(ErrorKind::Config,
         str("a global batch of ", *options.global_batch, " is not ", *options.shards, " shards of ",
             options.batch_size),
         str("give --global-batch none, or ", plan.global_batch()));
  }
  return plan;
}

}  // namespace tandem
