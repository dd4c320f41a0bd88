#include "comm/shm/peers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace tandem {
namespace {

constexpr long kPidfdOpen = 434;  // SYS_pidfd_open, missing in older headers

}  // namespace

Peers::Peers(const Board& board, int rank, int control_fd)
    : board_(board), rank_(rank), processes_(static_cast<std::size_t>(board.num_ranks())) {
  if (control_fd >= 0) control_ = ControlPage::open(control_fd);
}

std::vector<LostRank> Peers::find_lost() {
  std::vector<LostRank> lost;
  for (int rank = 0; rank < board_.num_ranks(); ++rank) {
    if (is_gone(rank) && !board_.has_left(rank)) lost.push_back({.rank = rank, .how = "its process has exited"});
  }
  if (const auto failed = control_ ? control_->aborted_by() : std::nullopt) {
    lost.push_back({.rank = *failed, .how = "the launcher reports that it failed"});
  }
  return lost;
}

bool Peers::is_gone(int rank) {
  const int pid = board_.pid(rank);
  if (rank == rank_ || pid == 0) return false;
  Fd& process = processes_[static_cast<std::size_t>(rank)];
  // A process id may be reused after the process has exited; a pidfd always means the same process.
  if (!process) process = Fd(static_cast<int>(::syscall(kPidfdOpen, pid, 0)));
  if (!process) return ::kill(pid, 0) != 0 && errno == ESRCH;
  pollfd event{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&event, 1, 0) > 0;
}

}  // namespace tandem
