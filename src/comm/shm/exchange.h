#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/shm/board.h"
#include "comm/shm/failure.h"
#include "comm/shm/posting.h"

namespace tandem {

struct ExchangeOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  std::size_t chunk_bytes = 128 << 10;
  int spins = 1000;  // polls before sleeping
  std::function<std::vector<LostRank>()> find_lost = [] { return std::vector<LostRank>(); };
};

// The collectives over shared memory, as executed by one rank. A collective is split into chunks. Once every rank has
// posted it, each rank claims chunks: it reads a chunk from the regions of all ranks, reduces it and writes the result
// to all of them. Elements are always summed along the same tree, so the result does not depend on the rank that
// computes it. There is no background thread: chunks are processed in `start`, up to this rank's share, and in
// `finish`. Used by one thread at a time.
class Exchange {
 public:
  // `regions`: one per rank.
  Exchange(Board board, std::vector<std::span<std::byte>> regions, int rank, ExchangeOptions options);

  // Posts the next collective and returns its number. The buffer is in use until `finish`.
  std::uint64_t start(const Posting& posting);

  // Blocks until the collective is finished on all ranks. An Error on a mismatch between ranks, a lost rank or a
  // timeout: every rank then gets the same Error, and no collective can be started any more.
  void finish(std::uint64_t number);

  bool is_finished(std::uint64_t number) const { return queue_.empty() || number < queue_.front().number; }

  bool failed() const { return has_failed_ || board_.failure().has_value(); }

  void set_timeout(std::chrono::milliseconds timeout) { options_.timeout = timeout; }

 private:
  struct Operation {
    std::uint64_t number;
    Posting posting;
    std::uint64_t num_chunks;
    std::vector<std::byte*> buffers;  // of all ranks; empty until all have posted
  };

  // Held while the queue is in use; a second thread gets an Error.
  class Turn;

  void advance(Operation& operation, std::uint64_t max_chunks);
  bool find_buffers(Operation& operation);
  void run_chunk(const Operation& operation, std::uint64_t chunk);
  void finish_up_to(std::uint64_t number);
  void complete(Operation& operation);
  bool is_done(const Operation& operation) const { return board_.is_done(operation.number, operation.num_chunks); }
  bool all_have_posted(std::uint64_t number) const;

  void check(const Operation& operation, std::chrono::nanoseconds waited);
  [[noreturn]] void fail_everywhere(const Board::Failure& failure);
  void throw_if_failed() const;

  Board board_;
  std::vector<std::span<std::byte>> regions_;
  int rank_;
  ExchangeOptions options_;
  std::uint64_t next_ = 0;
  bool has_failed_ = false;
  std::unique_ptr<std::atomic<bool>> is_busy_ = std::make_unique<std::atomic<bool>>(false);
  std::deque<Operation> queue_;     // posted, not known to be finished
  std::vector<std::byte*> places_;  // one per rank; kept, since allocating it takes longer than a small sum
};

}  // namespace tandem
