#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/shm/board.h"
#include "comm/shm/posting.h"

namespace tandem {

// A rank that cannot take part any more.
struct LostRank {
  int rank = 0;
  std::string how;  // "its process has exited"
};

// The failure of collective `number`, as reported by every rank.
Board::Failure disagreement(const Board& board, std::uint64_t number, const Posting& mine);
Board::Failure loss(const LostRank& lost, std::uint64_t number, const Posting& posting);
Board::Failure lateness(const std::vector<int>& late, std::uint64_t number, const Posting& posting,
                        std::chrono::milliseconds timeout);

// The ranks that have not posted the collective yet.
std::vector<int> missing(const Board& board, std::uint64_t number);

// A rank that has left without posting the collective.
std::optional<LostRank> find_leaver(const Board& board, std::uint64_t number);

}  // namespace tandem
