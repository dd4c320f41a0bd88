#pragma once

#include <chrono>
#include <string>

namespace tandem {

// The time since construction, on the monotonic clock.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  Clock::duration elapsed() const { return Clock::now() - start_; }
  double seconds() const { return std::chrono::duration<double>(elapsed()).count(); }

 private:
  Clock::time_point start_ = Clock::now();
};

// A point in time, and how long it is until then.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::duration limit) : end_(Clock::now() + limit) {}

  bool passed() const { return Clock::now() >= end_; }
  Clock::time_point end() const { return end_; }
  Clock::duration left() const { return end_ - Clock::now(); }

  // The remaining time for poll(2): rounded up, so that the last wait does not end early and spin; never negative.
  int poll_ms() const;

 private:
  Clock::time_point end_;
};

// The time since the host booted: the same clock in every process, and it does not stop while the host is suspended.
std::chrono::milliseconds since_boot();

// When this process was started, on that clock; an exec does not change it.
std::chrono::milliseconds process_start();

// "2026-11-15T05:23:43.120Z"
std::string utc_text(std::chrono::system_clock::time_point moment);

}  // namespace tandem
