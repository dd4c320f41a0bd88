#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/shm/board.h"
#include "comm/shm/posting.h"

namespace tandem {

// A rank that will not come any more.
struct LostRank {
  int rank = 0;
  std::string how;  // "its process is gone"
};

// What went wrong with collective `number`, in words, as every rank gets to read it.
Board::Failure disagreement(const Board& board, std::uint64_t number, const Posting& mine);
Board::Failure loss(const LostRank& lost, std::uint64_t number, const Posting& posting);
Board::Failure lateness(const std::vector<int>& late, std::uint64_t number, const Posting& posting,
                        std::chrono::milliseconds timeout);

// The ranks that have not posted it yet.
std::vector<int> missing(const Board& board, std::uint64_t number);

// A rank that left without having posted it.
std::optional<LostRank> find_leaver(const Board& board, std::uint64_t number);

}  // namespace tandem
