#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tandem {

using FutexWord = std::atomic<std::uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == 4, "the kernel compares the bare word");

// Sleeps while the word equals `expected`, at most until `until`; may return early. Works across processes.
void futex_wait(const FutexWord& word, std::uint32_t expected, std::chrono::steady_clock::time_point until);

void futex_wake_all(const FutexWord& word);

}  // namespace tandem
