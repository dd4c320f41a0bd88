#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "comm/shm/reduce.h"

namespace tandem {

enum class Collective : std::uint8_t { AllReduce, AllGather, ReduceScatter, Broadcast, Barrier };

// What a rank says of its next collective. All ranks must say the same, but for where their buffer lies.
struct Posting {
  Collective collective = Collective::Barrier;
  ElementType type = ElementType::Byte;
  ElementOp op = ElementOp::Sum;
  int root = 0;
  std::uint64_t count = 0;  // elements: of the tensor, or of one rank's part of it
  double divisor = 1;
  std::int64_t step = -1;    // of training; -1: nobody said
  std::uint64_t offset = 0;  // of the buffer, in the rank's region

  bool agrees_with(const Posting& other) const;
  std::string text() const;  // "all_reduce (sum) of 1024 float elements in step 3"
};

// A posting as it lies in shared memory.
using PostingWords = std::array<std::uint64_t, 5>;
PostingWords pack(const Posting& posting);
Posting unpack(const PostingWords& words);

}  // namespace tandem
