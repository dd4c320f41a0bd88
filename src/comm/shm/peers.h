#pragma once

#include <optional>
#include <vector>

#include "base/control_page.h"
#include "base/fd.h"
#include "comm/shm/board.h"
#include "comm/shm/failure.h"

namespace tandem {

// The processes of the other ranks of this host, and whether they are still there.
class Peers {
 public:
  // `control_fd` is the launcher's control page; -1: there is none.
  Peers(const Board& board, int rank, int control_fd);

  // Those that are gone without having left, and one that the launcher says has failed. Only ranks that have put their
  // process id on the board are known.
  std::vector<LostRank> find_lost();

 private:
  bool is_gone(int rank);

  Board board_;
  int rank_;
  std::vector<Fd> processes_;  // by rank; opened when it is known
  std::optional<ControlPage> control_;
};

}  // namespace tandem
