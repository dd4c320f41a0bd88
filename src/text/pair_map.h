#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace tandem {

// A hash map from pairs of tokens: open addressing, at most half full.
template <class Value>
class PairMap {
 public:
  explicit PairMap(std::size_t num_expected = 0) : slots_(std::bit_ceil(2 * num_expected + 2)) {}

  const Value* find(TokenId left, TokenId right) const {
    const Slot& slot = slots_[place_of(key_of(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

  // The value of that pair, inserted if missing.
  Value& at(TokenId left, TokenId right) {
    if (2 * (num_used_ + 1) > slots_.size()) grow();
    const std::uint64_t key = key_of(left, right);
    Slot& slot = slots_[place_of(key)];
    if (slot.key == kEmpty) ++num_used_;
    slot.key = key;
    return slot.value;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };

  static std::uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }

  // The slot of the key, or the free slot for it.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask;
    while (slots_[place].key != key && slots_[place].key != kEmpty) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t num_used_ = 0;
};

}  // namespace tandem
