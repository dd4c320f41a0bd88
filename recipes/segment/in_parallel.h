#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <vector>

namespace tandem::segment {

// Calls body(index) for 0 <= index < count, on that many threads. If a call throws, no others begin, and the exception
// is thrown here.
template <class Body>
void in_parallel(std::int64_t count, int threads, const Body& body) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    struct Ending {
      std::atomic<std::int64_t>& next;
      std::int64_t count;
      ~Ending() { next = count; }
    };
    const Ending ending{next, count};
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::future<void>> parts;
  for (int i = 0; i < threads; ++i) parts.push_back(std::async(std::launch::async, work));
  for (std::future<void>& part : parts) part.get();
}

}  // namespace tandem::segment
