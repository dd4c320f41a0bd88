#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/futex.h"

namespace tandem {

// An append-only log in the memory that the ranks of one host share. Every rank may append, and all read the same
// entries in the same order. There is no lock: a rank that dies while it appends leaves the entries before it readable.
class SharedLog {
 public:
  // Maps the beginning of the run's memory (base/run_memory.h).
  explicit SharedLog(int fd);
  ~SharedLog();
  SharedLog(const SharedLog&) = delete;
  SharedLog& operator=(const SharedLog&) = delete;

  // An Error if there is no room left.
  void append(std::string_view entry);

  // The entry at `position`, which moves on to the next one; nothing if it is not written yet. Begin with 0.
  std::optional<std::string> read(std::size_t& position) const;

  // Counts the entries written so far. Read it before the log; then wait until it changes or the time is up.
  std::uint32_t epoch() const { return header_->epoch; }
  void wait_for_change(std::uint32_t epoch, Deadline::Clock::time_point until) const {
    futex_wait(header_->epoch, epoch, until);
  }

 private:
  struct Header {
    FutexWord epoch;
    std::atomic<std::uint64_t> size;  // bytes given out to entries
  };
  using Length = std::atomic<std::uint32_t>;  // of an entry, plus 1; 0: not written yet

  Length& length_at(std::size_t position) const { return *reinterpret_cast<Length*>(entries_ + position); }

  Header* header_;
  std::byte* entries_;
};

}  // namespace tandem
