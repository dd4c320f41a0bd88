#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <vector>

#include "base/clock.h"

namespace tandem::bench {

// Timestamps on a device: events of the current CUDA stream, or the clock on a CPU. Reading them synchronizes.
class Moments {
 public:
  explicit Moments(c10::Device device) : device_(device) {}

  void mark() {
    if (device_.is_cpu()) {
      seconds_.push_back(watch_.seconds());
      return;
    }
    events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    events_.back().record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  }

  // The intervals between consecutive timestamps, without the first `skipped`.
  std::vector<double> intervals_ms(std::size_t skipped) const {
    std::vector<double> intervals;
    if (!events_.empty()) events_.back().synchronize();
    for (std::size_t i = skipped + 1; i < seconds_.size(); ++i) {
      intervals.push_back(1000 * (seconds_[i] - seconds_[i - 1]));
    }
    for (std::size_t i = skipped + 1; i < events_.size(); ++i) {
      intervals.push_back(events_[i - 1].elapsedTime(events_[i]));
    }
    return intervals;
  }

 private:
  c10::Device device_;
  Stopwatch watch_;
  std::vector<double> seconds_;
  std::vector<c10::Event> events_;
};

}  // namespace tandem::bench
