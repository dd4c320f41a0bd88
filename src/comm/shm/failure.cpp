#include "comm/shm/failure.h"

#include <tandem/units.h>

#include "base/text.h"

namespace tandem {
namespace {

std::string collective_text(std::uint64_t number, const Posting& posting) {
  return str(posting.text(), ", collective ", number);
}

}  // namespace

Board::Failure disagreement(const Board& board, std::uint64_t number, const Posting& mine) {
  std::vector<int> like_mine;
  std::vector<std::string> others;
  for (int rank = 0; rank < board.num_ranks(); ++rank) {
    const auto posting = board.posting(rank, number);
    if (!posting) continue;
    if (posting->agrees_with(mine)) {
      like_mine.push_back(rank);
    } else {
      others.push_back(str("rank ", rank, " calls ", posting->text()));
    }
  }
  return {
      .kind = ErrorKind::Comm,
      .message = str("comm: the ranks do not agree on collective ", number, ": ", ranks_text(like_mine),
                     like_mine.size() == 1 ? " calls " : " call ", mine.text(), ", ", join(others, ", ")),
      .hint = "every rank must call the same collectives, in the same order, with tensors of the same type and size"};
}

Board::Failure loss(const LostRank& lost, std::uint64_t number, const Posting& posting) {
  return {.kind = ErrorKind::Comm,
          .message = str("comm: rank ", lost.rank, " was lost (", lost.how,
                         ") while the others were waiting for it in ", collective_text(number, posting)),
          .hint = str(
              "check the output of rank ", lost.rank,
              "; if it succeeded, it ran fewer steps than the others: give all ranks the same number of batches, as "
              "a Sampler with Tail::Pad or Tail::Drop does")};
}

Board::Failure lateness(const std::vector<int>& late, std::uint64_t number, const Posting& posting,
                        std::chrono::milliseconds timeout) {
  const std::string who = late.empty() ? "the ranks did not finish " : str(ranks_text(late), " did not reach ");
  return {.kind = ErrorKind::Timeout,
          .message = str("comm: timeout after ", duration_text(timeout), ": ", who, collective_text(number, posting)),
          .hint = "check the output of those ranks (`tandem stack` shows where they are), or set a longer --timeout"};
}

std::vector<int> missing(const Board& board, std::uint64_t number) {
  std::vector<int> ranks;
  for (int rank = 0; rank < board.num_ranks(); ++rank) {
    if (board.num_posted(rank) <= number) ranks.push_back(rank);
  }
  return ranks;
}

std::optional<LostRank> find_leaver(const Board& board, std::uint64_t number) {
  for (const int rank : missing(board, number)) {
    if (board.has_left(rank)) {
      return LostRank{.rank = rank, .how = str("it left after ", board.num_posted(rank), " collectives")};
    }
  }
  return std::nullopt;
}

}  // namespace tandem
