#include "launch/restart_policy.h"

#include <algorithm>

namespace tandem {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kEarly{10};
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{60'000};

}  // namespace

bool RestartPolicy::allows(int attempt, std::chrono::nanoseconds uptime, const std::string& failure) {
  const bool is_left = attempt < max_restarts_;
  const bool may_repeat = uptime < min_uptime_;
  repeated_ = is_left && may_repeat && failure == last_failure_;
  last_failure_ = may_repeat ? failure : "";
  num_early_ = uptime < kEarly ? num_early_ + 1 : 0;
  return is_left && !repeated_;
}

// None after the first early failure, then 100 ms, 200 ms, 400 ms, ...
milliseconds RestartPolicy::pause() const {
  if (num_early_ < 2) return milliseconds(0);
  constexpr int kLargestShift = 10;
  return std::min(kLongestPause, kFirstPause * (1 << std::min(num_early_ - 2, kLargestShift)));
}

}  // namespace tandem
