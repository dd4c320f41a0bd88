#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tandem {

// Neither is FUTEX_PRIVATE: the word is shared between processes. The clock is CLOCK_MONOTONIC, as steady_clock's.
void futex_wait(const FutexWord& word, std::uint32_t expected, std::chrono::steady_clock::time_point until) {
  const auto since_start = until.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_start);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (since_start - seconds).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, &limit, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_all(const FutexWord& word) { ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace tandem
