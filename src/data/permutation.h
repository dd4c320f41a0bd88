#pragma once

#include <array>
#include <cstdint>

namespace tandem {

// A pseudorandom permutation of 0 .. size-1 that depends only on (size, seed, epoch), on every machine and in every
// version. Random access in constant time and memory; at most 2^62 numbers.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return size_; }
  std::int64_t operator[](std::int64_t position) const;

 private:
  std::uint64_t scramble(std::uint64_t number) const;

  static constexpr int kRounds = 8;

  std::int64_t size_;
  int right_bits_;
  std::uint64_t left_mask_;
  std::uint64_t right_mask_;
  std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace tandem
