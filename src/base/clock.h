#pragma once

#include <chrono>
#include <string>

namespace tandem {

// Time since it was made, by a clock that never jumps.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  Clock::duration elapsed() const { return Clock::now() - start_; }
  double seconds() const { return std::chrono::duration<double>(elapsed()).count(); }

 private:
  Clock::time_point start_ = Clock::now();
};

// A moment that lies a given time ahead; what waits for something asks it how long it may still wait.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::duration limit) : end_(Clock::now() + limit) {}

  bool passed() const { return Clock::now() >= end_; }

  // For poll(2): rounded up, so that a wait never ends just before the deadline and spins; never negative.
  int poll_ms() const;

 private:
  Clock::time_point end_;
};

// The time since the host was started: one clock for all its processes, which goes on while it sleeps.
std::chrono::milliseconds since_boot();

// When this process began, by that clock; what it was before an exec counts.
std::chrono::milliseconds process_start();

// "2026-11-15T05:23:43.120Z": sorts as text, the same on every host.
std::string utc_text(std::chrono::system_clock::time_point moment);

}  // namespace tandem
