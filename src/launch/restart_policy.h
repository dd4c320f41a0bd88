#pragma once

#include <chrono>
#include <string>

namespace tandem {

// Decides on restarts. The same failure twice in a row, within --min-uptime of the start, is not retried. Whatever the
// failures are, restarts of ranks that fail soon after their start are delayed more and more.
class RestartPolicy {
 public:
  RestartPolicy(int max_restarts, std::chrono::nanoseconds min_uptime)
      : max_restarts_(max_restarts), min_uptime_(min_uptime) {}

  // Whether to restart after the failure of an attempt (0: the first) that ran for `uptime`.
  bool allows(int attempt, std::chrono::nanoseconds uptime, const std::string& failure);

  // Whether that attempt was not restarted though restarts were left, as it failed like the one before.
  bool saw_repetition() const { return repeated_; }

  // How long to wait before the restart.
  std::chrono::milliseconds pause() const;

 private:
  int max_restarts_;
  std::chrono::nanoseconds min_uptime_;
  std::string last_failure_;  // if it was within min_uptime_
  bool repeated_ = false;
  int num_early_ = 0;  // failures in a row
};

}  // namespace tandem
