#pragma once

#include <tandem/random_key.h>
#include <tandem/sampler.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// For random augmentation: what `get` of a dataset may know besides the index.
struct SampleFacts {
  std::uint64_t seed = 0;  // different for each sample and epoch, the same on every rank
  std::int64_t epoch = 0;
};

// For random batches, such as multi-scale training: what `collate` may know besides the samples.
struct BatchFacts {
  std::uint64_t seed = 0;       // different for each batch and epoch, the same on any number of ranks
  std::uint64_t step_seed = 0;  // different for each step and epoch, the same for all batches of a step
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // in its epoch
  const SampleBatch& samples;
};

// A dataset has `std::int64_t size() const` and one of
//   Sample get(std::int64_t index) const
//   Sample get(std::int64_t index, std::uint64_t seed) const        the seed of SampleFacts
//   Sample get(std::int64_t index, const SampleFacts& facts) const
// Several threads call `get` at the same time; samples can be copied. Errors quote `std::string name(std::int64_t
// index) const`, such as a file name, if there is one. `std::string content_key() const`, if there is one, identifies
// everything that `get` depends on: an exact run does not resume with another key.
template <class Dataset>
concept IsDataset = requires(const Dataset& dataset, std::int64_t index, std::uint64_t seed, const SampleFacts& facts) {
  { dataset.size() } -> std::convertible_to<std::int64_t>;
  requires requires { dataset.get(index); } || requires {
    dataset.get(index, seed);
  } || requires {
    dataset.get(index, facts);
  };
};

constexpr std::uint64_t sample_seed(std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  return random_key(seed, Draw::Sample, epoch, index);
}

namespace detail {

template <class Dataset>
auto get_sample(const Dataset& dataset, std::int64_t index, const SampleFacts& facts) {
  if constexpr (requires { dataset.get(index, facts); }) {
    return dataset.get(index, facts);
  } else if constexpr (requires { dataset.get(index, facts.seed); }) {
    return dataset.get(index, facts.seed);
  } else {
    return dataset.get(index);
  }
}

template <class Dataset>
using SampleOf = decltype(get_sample(std::declval<const Dataset&>(), 0, {}));

template <class Dataset>
std::string name_of(const Dataset& dataset, std::int64_t index) {
  if constexpr (requires { dataset.name(index); }) return dataset.name(index);
  return {};
}

// Of a dataset or a loader.
template <class Samples>
std::string content_key_of(const Samples& samples) {
  if constexpr (requires { samples.content_key(); }) return samples.content_key();
  return {};
}

template <class Collate, class Sample>
auto collate_samples(Collate& collate, std::vector<Sample>&& samples, const BatchFacts& facts) {
  if constexpr (requires { collate(std::move(samples), facts); }) {
    return collate(std::move(samples), facts);
  } else {
    return collate(std::move(samples));
  }
}

template <class Collate, class Sample>
using BatchOf = decltype(collate_samples(std::declval<Collate&>(), std::declval<std::vector<Sample>&&>(),
                                         std::declval<const BatchFacts&>()));

}  // namespace detail
}  // namespace tandem
