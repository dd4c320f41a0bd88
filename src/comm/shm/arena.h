#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/fd.h"

namespace tandem {

// Shared memory of the ranks of one host (a memfd): the board, then a region per rank. It is zero-initialized and freed
// when the last process has exited, even after a crash. Each region may grow to the size of the machine's memory; pages
// are allocated on first use.
class Arena {
 public:
  // In the memory that the ranks have inherited from their launcher (base/run_memory.h), which outlives them: the last
  // rank to leave frees its pages. Each meeting of the ranks has an arena of its own.
  static Arena inherit(int fd, int meeting, int num_ranks, std::size_t board_size);

  // One rank creates it; the others open it by its address, as processes of the same user. An Error if the address does
  // not lead to an arena of this user with the token in the address.
  static Arena create(int num_ranks, std::size_t board_size);
  static Arena open(const std::string& address, int num_ranks, std::size_t board_size);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::string address() const;  // on the rank that created it
  int num_ranks() const { return num_ranks_; }

  std::byte* board() const;
  std::span<std::byte> region(int rank) const;

 private:
  struct Extent {
    std::size_t board;   // offset of the first region
    std::size_t region;  // size of one region
    std::size_t whole;   // size of the mapping
  };
  static Extent extent_of(int num_ranks, std::size_t board_size);

  Arena(Fd own, int fd, std::size_t offset, int num_ranks, const Extent& extent);
  std::uint64_t token() const;                   // random, identifies this arena
  std::atomic<std::uint64_t>& num_left() const;  // ranks that have left it, if it was inherited

  Fd fd_;  // empty if it was inherited
  int pid_ = ::getpid();
  int num_ranks_;
  Extent extent_;
  std::byte* memory_ = nullptr;
};

// Allocates memory in the region of one rank. Released memory is reused. Thread-safe.
class Region {
 public:
  explicit Region(std::span<std::byte> memory);

  // The offset of `address` in the region; empty if it is outside.
  std::optional<std::size_t> offset_of(const void* address) const;

  // Aligned to a cache line. An Error if the region is full. Pass the same size to `release`.
  std::byte* allocate(std::size_t size);
  void release(std::byte* piece, std::size_t size);

 private:
  std::span<std::byte> memory_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset -> size; adjacent blocks are merged
  std::size_t touched_ = 0;                  // pages below this offset are allocated
};

}  // namespace tandem
