#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tandem {

using FutexWord = std::atomic<std::uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == 4, "the kernel looks at the bare word");

// Sleeps while the word is `while_it_is`, no longer than until `until`; may return early. Wakes across processes.
void futex_wait(const FutexWord& word, std::uint32_t while_it_is, std::chrono::steady_clock::time_point until);

void futex_wake_all(const FutexWord& word);

}  // namespace tandem
