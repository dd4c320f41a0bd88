#pragma once

#include <tandem/random_key.h>

#include <cstdint>

namespace tandem::segment {

// Random numbers that depend on the key alone.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : key_(key) {}

  std::uint64_t bits() { return mix_bits(key_ + count_++); }
  double from(double least, double most) {
    return least + (most - least) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  int below(int end) { return static_cast<int>((bits() >> 32) * static_cast<std::uint64_t>(end) >> 32); }

 private:
  std::uint64_t key_;
  std::uint64_t count_ = 0;
};

}  // namespace tandem::segment
