#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "text/vocabulary.h"

namespace tandem {

// A piece of at most 16 bytes, padded with zeros, and its length.
struct PieceKey {
  static constexpr std::size_t kMaxLength = 16;

  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t length = 0;

  // Bytes after the piece, up to `end`, may be read.
  PieceKey(const char* at, std::size_t num_bytes, const char* end) : length(num_bytes) {
    if (end - at >= static_cast<std::ptrdiff_t>(kMaxLength)) {
      // 16 bytes of ones, then zeros; read so that `length` ones remain.
      alignas(32) static constexpr std::array<std::uint64_t, 4> kMask{~0ULL, ~0ULL, 0, 0};
      const char* mask = reinterpret_cast<const char*>(kMask.data()) + (kMaxLength - num_bytes);
      const __m128i bytes = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
                                          _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask)));
      low = static_cast<std::uint64_t>(_mm_cvtsi128_si64(bytes));
      high = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(bytes, bytes)));
    } else {
      std::array<std::uint64_t, 2> halves{};
      std::memcpy(halves.data(), at, num_bytes);
      low = halves[0];
      high = halves[1];
    }
  }

  std::size_t hash() const {
    return ((low ^ length) * 0x9E3779B97F4A7C15ULL ^ std::rotl(high * 0xC2B2AE3D27D4EB4FULL, 32)) >> 24;
  }
};

// The tokens of a short piece. Two entries fill a cache line.
struct PieceEntry {
  static constexpr std::size_t kMaxIds = 3;

  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint8_t length = 0;  // 0: empty
  std::uint8_t num_ids = 0;
  std::array<TokenId, kMaxIds> ids{};

  PieceEntry() = default;
  PieceEntry(const PieceKey& key, std::span<const TokenId> result)
      : low(key.low),
        high(key.high),
        length(static_cast<std::uint8_t>(key.length)),
        num_ids(static_cast<std::uint8_t>(result.size())) {
    std::copy(result.begin(), result.end(), ids.begin());
  }

  bool is(const PieceKey& key) const { return low == key.low && high == key.high && length == key.length; }
};
static_assert(sizeof(PieceEntry) == 32);

// A hash map of short pieces, built once: open addressing, at most half full.
class PieceTable {
 public:
  explicit PieceTable(std::size_t num_expected) : slots_(std::bit_ceil(2 * num_expected + 2)) {}

  const PieceEntry* find(const PieceKey& key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t place = key.hash() & mask;; place = (place + 1) & mask) {
      if (slots_[place].is(key)) return &slots_[place];
      if (slots_[place].length == 0) return nullptr;
    }
  }

  // The key must be new, and the expected number not exceeded.
  void add(const PieceKey& key, std::span<const TokenId> ids) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = key.hash() & mask;
    while (slots_[place].length != 0) place = (place + 1) & mask;
    slots_[place] = PieceEntry(key, ids);
  }

 private:
  std::vector<PieceEntry> slots_;
};

// A direct-mapped cache of recently merged pieces.
class PieceCache {
 public:
  const PieceEntry* find(const PieceKey& key) const {
    if (slots_.empty()) return nullptr;
    const PieceEntry& entry = slots_[key.hash() % kNumSlots];
    return entry.is(key) ? &entry : nullptr;
  }

  void add(const PieceKey& key, std::span<const TokenId> ids) {
    if (ids.size() > PieceEntry::kMaxIds) return;
    if (slots_.empty()) slots_.resize(kNumSlots);
    slots_[key.hash() % kNumSlots] = PieceEntry(key, ids);
  }

 private:
  static constexpr std::size_t kNumSlots = 8192;  // 256 KiB: fits the L2 cache

  std::vector<PieceEntry> slots_;
};

}  // namespace tandem
