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

// Where the ranks of one host tell each other what they do: a ring of postings for each rank, and for each collective
// how much of it is claimed and done. It lies in memory that they share and that begins as zeros. Every word is a
// lock-free atomic, so a rank that dies leaves nothing locked. Collectives are numbered from 0.
class Board {
 public:
  static constexpr std::uint64_t kDepth = 256;  // collectives that a rank may have in flight

  static std::size_t size(int num_ranks);

  Board(std::byte* memory, int num_ranks);

  int num_ranks() const { return num_ranks_; }

  // Collective `number` of `rank` takes place as described. The one kDepth before it must be done.
  void post(int rank, std::uint64_t number, const Posting& posting);

  // Nothing while the rank has not come so far, and when it is long past it.
  std::optional<Posting> posting(int rank, std::uint64_t number) const;

  std::uint64_t num_posted(int rank) const { return states_[rank].num_posted; }

  // The next chunk of a collective that nobody does yet; nothing when there is none.
  std::optional<std::uint64_t> claim(std::uint64_t number, std::uint64_t num_chunks);
  void finish_chunk(std::uint64_t number, std::uint64_t num_chunks);
  bool is_done(std::uint64_t number, std::uint64_t num_chunks) const;

  // Why the ranks cannot go on. The first failure stays, and is every rank's.
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

  // Looks `spins` times whether `is_true`, then sleeps until something changes, for a few milliseconds at most.
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
  static_assert(Word::is_always_lock_free, "another process could not see a lock of ours");

  static constexpr std::size_t kLine = 64;  // writers of different words stay on different cache lines

  struct alignas(kLine) Header {
    FutexWord epoch;  // changes when those who sleep are to look again
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
    Word tag;  // the collective's number + 1
    std::array<Word, std::tuple_size_v<PostingWords>> words;
  };
  struct alignas(2 * kLine) Progress {
    Word claimed;  // the collective's number + 1, and a count
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
