#include <tandem/error.h>
#include <tandem/random_key.h>
#include <tandem/sampler.h>

#include <algorithm>

#include "base/text.h"
#include "data/permutation.h"

namespace tandem {
namespace {

std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  const Permutation permutation(size, seed, epoch);
  std::vector<std::int64_t> ids(size);
  for (std::int64_t i = 0; i < size; ++i) ids[i] = permutation[i];
  return ids;
}

}  // namespace

std::vector<std::int64_t> length_order(std::span<const std::int64_t> lengths, const LengthOrderOptions& options,
                                       std::uint64_t seed, std::int64_t epoch) {
  if (options.batch_size < 1 || options.pool < 1) {
    fail(ErrorKind::Config, str("length order: pool is ", options.pool, " and batch_size ", options.batch_size),
         "both must be at least 1");
  }
  const auto size = static_cast<std::int64_t>(lengths.size());
  const std::int64_t num_full = size / options.batch_size;
  const std::int64_t left_over = num_full * options.batch_size;  // where the samples begin that fill no batch
  const std::int64_t pool = options.batch_size * std::min(options.pool, (num_full + 1) / 2);
  std::vector<std::int64_t> sorted = shuffled(size, seed, epoch);
  const auto sort = [&](std::int64_t begin, std::int64_t end) {
    std::stable_sort(sorted.begin() + begin, sorted.begin() + end,
                     [&](std::int64_t a, std::int64_t b) { return lengths[a] < lengths[b]; });
  };
  for (std::int64_t begin = 0; begin < left_over; begin += pool) sort(begin, std::min(left_over, begin + pool));
  sort(left_over, size);
  std::vector<std::int64_t> order;
  order.reserve(size);
  const auto append = [&](std::int64_t begin, std::int64_t end) {
    order.insert(order.end(), sorted.begin() + begin, sorted.begin() + end);
  };
  for (const std::int64_t batch : shuffled(num_full, random_key(seed, Draw::BatchShuffle), epoch)) {
    append(batch * options.batch_size, (batch + 1) * options.batch_size);
  }
  append(left_over, size);
  return order;
}

EpochOrder by_length(std::vector<std::int64_t> lengths, const LengthOrderOptions& options) {
  return [lengths = std::move(lengths), options](std::int64_t num_samples, std::uint64_t seed,
                                                 std::int64_t epoch) -> Order {
    if (num_samples != static_cast<std::int64_t>(lengths.size())) {
      fail(ErrorKind::Data, str("length order: ", lengths.size(), " lengths for ", num_samples, " samples"),
           "give the length of every sample");
    }
    return [order = length_order(lengths, options, seed, epoch)](std::int64_t position) { return order[position]; };
  };
}

}  // namespace tandem
