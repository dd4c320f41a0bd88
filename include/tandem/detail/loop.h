#pragma once

namespace tandem::detail {

// For a range-based for loop over an object that itself knows its current element and when it is over.
struct LoopEnd {};

template <class Loop>
class LoopIterator {
 public:
  explicit LoopIterator(Loop& loop) : loop_(&loop) {}
  decltype(auto) operator*() const { return loop_->current(); }
  LoopIterator& operator++() {
    loop_->advance();
    return *this;
  }
  bool operator==(LoopEnd) const { return loop_->is_over(); }

 private:
  Loop* loop_;
};

}  // namespace tandem::detail
