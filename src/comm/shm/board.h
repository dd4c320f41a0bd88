#pragma once

#include <tandem/error.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/futex.h"
#include "comm/shm/posting.h"

namespace tandem {

// The control data of the collectives, in zero-initialized shared memory: a ring of postings per rank, and the number
// of claimed and finished chunks per collective. Every word is a lock-free atomic, so a rank that dies leaves nothing
// locked. Collectives are numbered from 0.
class Board {
 public:
  static constexpr std::uint64_t kDepth = 256;  // collectives in flight per rank

  static std::size_t size(int num_ranks);

  Board(std::byte* memory, int num_ranks);

  int num_ranks() const { return num_ranks_; }

  // Publishes collective `number` of `rank`. Collective `number - kDepth` must be finished.
  void post(int rank, std::uint64_t number, const Posting& posting);

  // Empty before the rank has posted it, and after its slot was reused.
  std::optional<Posting> posting(int rank, std::uint64_t number) const;

  std::uint64_t num_posted(int rank) const { return states_[rank].num_posted; }

  // The next unclaimed chunk of a collective; empty if there is none.
  std::optional<std::uint64_t> claim(std::uint64_t number, std::uint64_t num_chunks);
  void finish_chunk(std::uint64_t number, std::uint64_t num_chunks);
  bool is_done(std::uint64_t number, std::uint64_t num_chunks) const;

  // The failure reported by every rank; the first one is kept.
  struct Failure {
    ErrorKind kind = ErrorKind::Comm;
    std::string message;
    std::string hint;
  };
  void set_failure(const Failure& failure);
  std::optional<Failure> failure() const;

  void set_pid(int rank, int pid) { states_[rank].pid = pid; }
  int pid(int rank) const { return states_[rank].pid; }
  void leave(int rank);
  bool has_left(int rank) const { return states_[rank].has_left; }

  // Polls `is_true` up to `spins` times, then sleeps until the board changes, for a few milliseconds at most.
  template <class Condition>
  void wait(int spins, const Condition& is_true) const {
    for (int spin = 0; spin < spins; ++spin) {
      if (is_true()) return;
      __builtin_ia32_pause();
    }
    const std::uint32_t epoch = header_->epoch;
    ++header_->num_sleepers;
    if (!is_true()) sleep(epoch);
    --header_->num_sleepers;
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  static_assert(Word::is_always_lock_free, "a lock would not work across processes");

  static constexpr std::size_t kLine = 64;  // avoids false sharing

  struct alignas(kLine) Header {
    FutexWord epoch;  // incremented to wake sleeping ranks
    alignas(kLine) FutexWord num_sleepers;
    alignas(kLine) FutexWord failure_state;
    std::uint32_t failure_kind;
    std::array<char, 4096> message;
    std::array<char, 1024> hint;
  };
  struct alignas(kLine) RankState {
    Word num_posted;
    std::atomic<std::int32_t> pid;
    std::atomic<bool> has_left;
  };
  struct alignas(kLine) Slot {
    Word tag;  // number of the collective + 1
    std::array<Word, std::tuple_size_v<PostingWords>> words;
  };
  struct alignas(2 * kLine) Progress {
    Word claimed;  // number of the collective + 1, and a count
    alignas(kLine) Word done;
  };

  Slot& slot(int rank, std::uint64_t number) const {
    return slots_[static_cast<std::uint64_t>(rank) * kDepth + number % kDepth];
  }
  void sleep(std::uint32_t epoch) const;
  void wake() const;

  int num_ranks_;
  Header* header_;
  Progress* progress_;
  RankState* states_;
  Slot* slots_;
};

}  // namespace tandem
