#pragma once

#include <tandem/random_key.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace tandem {

// A dataset has `std::int64_t size() const` and `Sample get(std::int64_t index) const`, or, if samples are random,
// `Sample get(std::int64_t index, std::uint64_t seed) const`. Several threads call it at a time; samples can be copied.
// Errors quote `std::string name(std::int64_t index) const`, such as a file, where there is one.
template <class Dataset>
concept IsDataset = requires(const Dataset& dataset, std::int64_t index, std::uint64_t seed) {
  { dataset.size() } -> std::convertible_to<std::int64_t>;
  requires requires { dataset.get(index); } || requires {
    dataset.get(index, seed);
  };
};

// What `get` of a random dataset is given: another number for each sample and epoch, the same on every rank.
constexpr std::uint64_t sample_seed(std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  return random_key(seed, Draw::Sample, epoch, index);
}

namespace detail {

template <class Dataset>
auto get_sample(const Dataset& dataset, std::int64_t index, std::uint64_t seed) {
  if constexpr (requires { dataset.get(index, seed); }) {
    return dataset.get(index, seed);
  } else {
    return dataset.get(index);
  }
}

template <class Dataset>
using SampleOf = decltype(get_sample(std::declval<const Dataset&>(), 0, 0));

template <class Dataset>
std::string name_of(const Dataset& dataset, std::int64_t index) {
  if constexpr (requires { dataset.name(index); }) return dataset.name(index);
  return {};
}

}  // namespace detail
}  // namespace tandem
