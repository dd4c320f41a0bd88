#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/fd.h"

namespace tandem {

// Memory that the launcher shares with the ranks of one node, through an inherited file descriptor (TANDEM_CONTROL_FD).
// Every process may write to it at any time: every word is a lock-free atomic, so a process that dies holds no lock.
class ControlPage {
 public:
  using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC: the same in every process of a host

  static constexpr int kMaxRanks = 4096;

  // A new page, freed with its last user. Its descriptor is close-on-exec.
  static ControlPage create(int num_ranks);

  // Maps the page of an inherited descriptor, which the caller keeps. Nothing if the descriptor is another file: the
  // program may have closed the number and reused it.
  static std::optional<ControlPage> open(int fd);

  ControlPage(ControlPage&& other) noexcept
      : fd_(std::move(other.fd_)), layout_(std::exchange(other.layout_, nullptr)), num_ranks_(other.num_ranks_) {}
  ControlPage& operator=(ControlPage&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(layout_, other.layout_);
    std::swap(num_ranks_, other.num_ranks_);
    return *this;
  }
  ~ControlPage();

  int fd() const { return fd_.get(); }          // -1 after open()
  int num_ranks() const { return num_ranks_; }  // of this node

  // Records that `rank` (of the whole world) failed, and wakes all waiters. Only the first call has an effect.
  void abort(int rank);
  std::optional<int> aborted_by() const;

  // Waits up to `limit` for an abort.
  std::optional<int> wait_for_abort(std::chrono::nanoseconds limit) const;

  // Clears everything for a restart. The old ranks must have exited.
  void reset(int restart_count);
  int restart_count() const;

  void set_pid(int local_rank, int pid);
  int pid(int local_rank) const;  // 0: not started

  // Heartbeat, and the time of the last one.
  void beat(int local_rank);
  std::optional<Clock::time_point> last_beat(int local_rank) const;

  // A rank's progress counter, in units of the caller's choice.
  void set_progress(int local_rank, std::uint64_t progress);
  std::uint64_t progress(int local_rank) const;

 private:
  struct Layout;
  struct Slot;

  ControlPage(Fd fd, Layout* layout, int num_ranks) : fd_(std::move(fd)), layout_(layout), num_ranks_(num_ranks) {}

  static std::size_t size_for(int num_ranks);
  static Layout* map(int fd, std::size_t size);  // nullptr on failure
  Slot& slot(int local_rank) const;

  Fd fd_;
  Layout* layout_;
  int num_ranks_;  // a copy: every rank can write to the page
};

}  // namespace tandem
