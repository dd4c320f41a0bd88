#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tandem {

// A sum of values that come one after the other, along the tree by which shm sums over ranks: neighbours first, then
// neighbours of those. So it does not matter which of the values a rank has added up before the ranks do: as long as
// that part is a subtree, the bits are the same.
template <class Value, class Add>  // Add: sum of two values
class TreeSum {
 public:
  explicit TreeSum(Add sum_of_two) : add_(std::move(sum_of_two)) {}

  // As one counts in binary: two sums of equally many values become one.
  void add(Value value) {
    for (std::uint64_t n = count_++; (n & 1) != 0; n >>= 1) value = add_(take_last(), std::move(value));
    parts_.push_back(std::move(value));
  }

  // Of at least one value; ends the sum.
  Value total() {
    Value sum = take_last();
    while (!parts_.empty()) sum = add_(take_last(), std::move(sum));
    return sum;
  }

 private:
  Value take_last() {
    Value last = std::move(parts_.back());
    parts_.pop_back();
    return last;
  }

  Add add_;
  std::uint64_t count_ = 0;
  std::vector<Value> parts_;
};

}  // namespace tandem
