#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tandem {

// The sum of a sequence of values along the same balanced binary tree by which shm sums over ranks: neighbours first,
// then pairs of those. If the values of each rank are a subtree, the bits do not depend on the number of ranks.
template <class Value, class Add>  // Add: sum of two values
class TreeSum {
 public:
  explicit TreeSum(Add sum_of_two) : add_(std::move(sum_of_two)) {}

  // As in a binary counter: two sums of the same number of values are added.
  void add(Value value) {
    for (std::uint64_t n = count_++; (n & 1) != 0; n >>= 1) value = add_(take_last(), std::move(value));
    parts_.push_back(std::move(value));
  }

  // At least one value was added. Can be called once.
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
