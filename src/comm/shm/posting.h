#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/shm/reduce.h"

namespace tandem {

enum class Collective : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, Barrier };

// The description of a collective that a rank publishes. It must be equal on all ranks, except for the offset.
struct Posting {
  Collective collective = Collective::Barrier;
  ElementType type = ElementType::Byte;
  ElementOp op = ElementOp::Sum;
  int root = 0;
  std::uint64_t count = 0;  // elements of the tensor, or of one rank's part of it
  double divisor = 1;
  std::int64_t step = -1;    // training step; -1: not set
  std::uint64_t offset = 0;  // of the buffer in the region of the rank

  bool agrees_with(const Posting& other) const;
  std::string text() const;  // "all_reduce (sum) of 1024 float elements in step 3"
};

// A posting as stored in shared memory.
using PostingWords = std::array<std::uint64_t, 5>;
PostingWords pack(const Posting& posting);
Posting unpack(const PostingWords& words);

}  // namespace tandem
