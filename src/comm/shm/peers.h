#pragma once

#include <optional>
#include <vector>

#include "base/control_page.h"
#include "base/fd.h"
#include "comm/shm/board.h"
#include "comm/shm/failure.h"

namespace tandem {

// Detects that the process of another rank of this host has exited.
class Peers {
 public:
  // `control_fd`: the control page of the launcher; -1: none.
  Peers(const Board& board, int rank, int control_fd);

  // Ranks that exited without leaving, and the rank that failed according to the launcher. Only ranks whose process id
  // is on the board are checked.
  std::vector<LostRank> find_lost();

 private:
  bool is_gone(int rank);

  Board board_;
  int rank_;
  std::vector<Fd> processes_;  // pidfd by rank, opened on first use
  std::optional<ControlPage> control_;
};

}  // namespace tandem
