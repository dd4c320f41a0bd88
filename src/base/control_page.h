#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"

namespace tandem {

// A page of memory that the launcher shares with the ranks of one node, through a descriptor that they inherit
// (TANDEM_CONTROL_FD). Anyone may write to it at any time: every word is a lock-free atomic, and a process that dies
// leaves nothing locked.
class ControlPage {
 public:
  using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC: the same in every process of a host

  static constexpr int kMaxRanks = 4096;

  // A new page in memory that vanishes with its last user. Its descriptor is closed in programs that we become, unless
  // it is passed on.
  static ControlPage create(int num_ranks);

  // The page behind an inherited descriptor, which stays the caller's. Nothing when it is another file: a program may
  // have closed the number and used it again.
  static std::optional<ControlPage> open(int fd);

  ControlPage(ControlPage&& other) noexcept
      : fd_(std::move(other.fd_)), layout_(std::exchange(other.layout_, nullptr)) {}
  ControlPage& operator=(ControlPage&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(layout_, other.layout_);
    return *this;
  }
  ~ControlPage();

  int fd() const { return fd_.get(); }  // -1 for one that was opened
  int num_ranks() const;                // of this node

  // Says that `rank` (of the whole world) failed and wakes whoever waits; the first one to say so stays.
  void abort(int rank);
  std::optional<int> aborted_by() const;

  // As aborted_by, but waits for it, no longer than `limit`.
  std::optional<int> wait_for_abort(std::chrono::nanoseconds limit) const;

  // Clears everything for the next attempt. The ranks of the last one must be gone.
  void reset(int restart_count);
  int restart_count() const;

  void set_pid(int local_rank, int pid);
  int pid(int local_rank) const;  // 0: not started

  // A sign of life, and when the last one came.
  void beat(int local_rank);
  std::optional<Clock::time_point> last_beat(int local_rank) const;

  // How far a rank has come; what the number counts is the business of those who use it.
  void set_progress(int local_rank, std::uint64_t progress);
  std::uint64_t progress(int local_rank) const;

 private:
  struct Layout;
  struct Slot;

  ControlPage(Fd fd, Layout* layout) : fd_(std::move(fd)), layout_(layout) {}

  static std::size_t size_for(int num_ranks);
  static Layout* map(int fd, std::size_t size);  // nullptr when it cannot be done
  Slot& slot(int local_rank) const;

  Fd fd_;
  Layout* layout_;
};

}  // namespace tandem
