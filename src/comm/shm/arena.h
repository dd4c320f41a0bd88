#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"

namespace tandem {

// Memory that the ranks of one host share: a board for what they tell each other, then a region for each rank. It
// begins as zeros and vanishes with its last user, however that one ends. Regions are as large as the machine's memory;
// a page costs nothing until it is used.
class Arena {
 public:
  // Made by one rank, and opened by the others by its address, which only processes of the same user can.
  static Arena create(int num_ranks, std::size_t board_size);
  static Arena open(const std::string& address, int num_ranks, std::size_t board_size);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::string address() const;  // of one that was created
  int num_ranks() const { return num_ranks_; }

  std::byte* board() const;
  std::byte* region(int rank) const;
  std::size_t region_size() const { return extent_.region; }

 private:
  struct Extent {
    std::size_t board;   // where the regions begin
    std::size_t region;  // the size of one
    std::size_t whole;
  };
  static Extent extent_of(int num_ranks, std::size_t board_size);

  Arena(Fd fd, int num_ranks, const Extent& extent);
  std::uint64_t token() const;  // a number that no other arena has

  Fd fd_;
  int num_ranks_;
  Extent extent_;
  std::byte* memory_ = nullptr;
};

// Hands out pieces of one rank's region. Memory that was used once is kept for the next who asks. Any thread may call.
class Region {
 public:
  Region(std::byte* memory, std::size_t size);

  // Where `address` lies in the region; nothing when it lies elsewhere.
  std::optional<std::size_t> offset_of(const void* address) const;

  // Aligned to a cache line. An Error when the region is full. `release` wants the same size again.
  std::byte* allocate(std::size_t size);
  void release(std::byte* piece, std::size_t size);

 private:
  std::byte* memory_;
  std::size_t size_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset -> size; neighbours are joined
  std::size_t touched_ = 0;                  // the region's pages exist up to here
};

}  // namespace tandem
