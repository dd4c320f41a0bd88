#pragma once

#include <functional>
#include <utility>

namespace tandem {

// A collective in flight. Its tensors belong to it until `wait` has returned. One that is dropped still takes place,
// but nobody learns its result. It is waited for before its communicator goes, by the thread that started it.
class [[nodiscard]] Work {
 public:
  Work() = default;  // nothing is left to do
  explicit Work(std::function<void()> rest) : rest_(std::move(rest)) {}
  Work(Work&& other) noexcept : rest_(std::exchange(other.rest_, nullptr)) {}
  Work& operator=(Work&& other) noexcept {
    rest_ = std::exchange(other.rest_, nullptr);
    return *this;
  }
  ~Work() = default;

  // Orders the result before what the caller does next: on CPU it blocks; for CUDA tensors it makes the current stream
  // wait. Throws the Error of a collective that failed. A second call does nothing.
  void wait() {
    if (const auto rest = std::exchange(rest_, nullptr)) rest();
  }

  // The same work with something to do after it, by whoever waits.
  Work then(std::function<void()> after) && {
    return Work([first = std::exchange(rest_, nullptr), after = std::move(after)] {
      if (first) first();
      after();
    });
  }

 private:
  std::function<void()> rest_;
};

}  // namespace tandem
