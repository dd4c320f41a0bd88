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
  // Every rank has put its process id on the board. `control_fd` is the launcher's control page; -1: there is none.
  Peers(const Board& board, int rank, int control_fd);

  // One that is gone without having left, or that the launcher says has failed.
  std::optional<LostRank> find_lost() const;

 private:
  Board board_;
  std::vector<Fd> processes_;  // by rank; none for this one
  std::optional<ControlPage> control_;
};

}  // namespace tandem
