#include "comm/shm/peers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tandem {
namespace {

constexpr long kPidfdOpen = 434;  // SYS_pidfd_open, which older headers do not know

}  // namespace

Peers::Peers(const Board& board, int rank, int control_fd) : board_(board) {
  for (int peer = 0; peer < board.num_ranks(); ++peer) {
    // A number may be given to a new process once the old one is gone; a descriptor never changes its meaning.
    processes_.emplace_back(peer == rank ? -1 : static_cast<int>(::syscall(kPidfdOpen, board.pid(peer), 0)));
  }
  if (control_fd >= 0) control_ = ControlPage::open(control_fd);
}

std::optional<LostRank> Peers::find_lost() const {
  std::vector<pollfd> events;
  for (const Fd& process : processes_) events.push_back({.fd = process.get(), .events = POLLIN, .revents = 0});
  ::poll(events.data(), events.size(), 0);
  for (std::size_t rank = 0; rank < events.size(); ++rank) {
    const bool is_gone = events[rank].revents != 0 && !board_.has_left(static_cast<int>(rank));
    if (is_gone) return LostRank{.rank = static_cast<int>(rank), .how = "its process is gone"};
  }
  if (!control_) return std::nullopt;
  const auto failed = control_->aborted_by();
  return failed ? std::optional(LostRank{.rank = *failed, .how = "the launcher says that it failed"}) : std::nullopt;
}

}  // namespace tandem
