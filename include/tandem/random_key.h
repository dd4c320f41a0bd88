#pragma once

#include <concepts>
#include <cstdint>

namespace tandem {

// SplitMix64: a bijection in which every output bit depends on every input bit. It must never change: the order of
// samples, and with it every resumed run, depends on it.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// What a random number is used for. Each use has a stream of its own; the numbers must never change.
enum class Draw : std::uint64_t {
  Shuffle = 1,       // the order of samples in an epoch
  BatchShuffle = 2,  // the order of batches in an epoch
  Sample = 3,        // augmentation of one sample
  MicroBatch = 4,    // dropout and the like in one micro-batch
  Resample = 5,      // bootstrap
  Synthetic = 6,     // synthetic data
  Generation = 7,    // sampling from a model's output
  Batch = 8,         // what a collate function draws for a batch
  Step = 9,          // the same for all batches of a step
};

// A random number that depends on its arguments alone, so there is no generator state to store: mix(seed), then
// mix(key + next) for the use and for each part, such as an epoch and the id of a sample.
template <std::integral... Parts>
constexpr std::uint64_t random_key(std::uint64_t seed, Draw use, Parts... parts) {
  std::uint64_t key = mix_bits(mix_bits(seed) + static_cast<std::uint64_t>(use));
  ((key = mix_bits(key + static_cast<std::uint64_t>(parts))), ...);
  return key;
}

}  // namespace tandem
