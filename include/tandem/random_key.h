#pragma once

#include <concepts>
#include <cstdint>

namespace tandem {

// SplitMix64: another number for each number, in which every bit depends on every bit. It may never change: orders of
// samples, and so resumed runs, depend on it.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// What random numbers are for. Each use has numbers of its own.
enum class Draw : std::uint64_t {
  Shuffle = 1,
  BatchShuffle = 2,
  Sample = 3,
  MicroBatch = 4,
  Resample = 5,
  Dialogue = 6,
  Token = 7,
};

// A random number that the arguments alone decide, so that nothing has to be stored to draw it again: mix(seed), then
// mix(key + next) for the use and for each part, such as an epoch and the id of a sample.
template <std::integral... Parts>
constexpr std::uint64_t random_key(std::uint64_t seed, Draw use, Parts... parts) {
  std::uint64_t key = mix_bits(mix_bits(seed) + static_cast<std::uint64_t>(use));
  ((key = mix_bits(key + static_cast<std::uint64_t>(parts))), ...);
  return key;
}

}  // namespace tandem
