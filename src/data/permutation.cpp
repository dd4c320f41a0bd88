#include "data/permutation.h"

#include <tandem/error.h>
#include <tandem/random_key.h>

#include <bit>

#include "base/text.h"

namespace tandem {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 62;

std::int64_t checked_size(std::int64_t size) {
  if (size < 0 || size > kMaxSize) {
    fail(ErrorKind::Config, str("permutation: size is ", size), "it must be between 0 and 2^62");
  }
  return size;
}

int bits_of(std::int64_t size) {
  return size == 0 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size - 1)));
}

std::uint64_t low_bits(int count) { return (std::uint64_t{1} << count) - 1; }

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(checked_size(size)),
      right_bits_((bits_of(size) + 1) / 2),
      left_mask_(low_bits(bits_of(size) / 2)),
      right_mask_(low_bits(right_bits_)) {
  for (int round = 0; round < kRounds; ++round) keys_[round] = random_key(seed, Draw::Shuffle, epoch, round);
}

// Cycle walking: a number outside of the range is scrambled again until it is inside, which is still a bijection. At
// least half of the numbers that `scramble` permutes are inside, so on average two calls are enough.
std::int64_t Permutation::operator[](std::int64_t position) const {
  if (position < 0 || position >= size_) {
    fail(ErrorKind::Internal, str("permutation: position ", position, " of ", size_), "positions are 0 to size - 1");
  }
  auto number = static_cast<std::uint64_t>(position);
  do number = scramble(number);
  while (number >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(number);
}

// A Feistel network over the bits that `size - 1` needs, the upper half (rounded down) left, the rest right:
//   left ^= mix(key[0] + right), right ^= mix(key[1] + left), left ^= mix(key[2] + right), ...
// each masked to the bits of its half. Every round is its own inverse, so the whole is a bijection for any `mix`.
std::uint64_t Permutation::scramble(std::uint64_t number) const {
  std::uint64_t left = number >> right_bits_;
  std::uint64_t right = number & right_mask_;
  for (int round = 0; round < kRounds; round += 2) {
    left ^= mix_bits(keys_[round] + right) & left_mask_;
    right ^= mix_bits(keys_[round + 1] + left) & right_mask_;
  }
  return left << right_bits_ | right;
}

}  // namespace tandem
