#include <tandem/error.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "base/worker_env.h"
#include "comm/nccl/roll.h"
#include "comm/shm/arena.h"
#include "comm/shm/failure.h"
#include "comm/shm/peers.h"

namespace tandem {
namespace {

constexpr const char* kAddressKey = "arena";

Arena meet_in_arena(c10d::Store& store, const World& world) {
  const std::size_t board_size = Board::size(world.size);
  if (!world.is_main()) {
    const auto address = store.get(kAddressKey);
    return Arena::open(std::string(address.begin(), address.end()), world.size, board_size);
  }
  Arena arena = Arena::create(world.size, board_size);
  const std::string address = arena.address();
  store.set(kAddressKey, std::vector<std::uint8_t>(address.begin(), address.end()));
  return arena;
}

class HostRoll : public Roll {
 public:
  HostRoll(c10d::Store& store, const World& world, std::chrono::milliseconds timeout)
      : arena_(meet_in_arena(store, world)),
        rank_(world.rank),
        timeout_(timeout),
        board_(arena_.board(), world.size),
        peers_(board_, world.rank, read_worker_env().control_fd) {
    board_.set_pid(rank_, ::getpid());
    post({});
    const Deadline deadline(timeout);
    while (!missing(board_, 0).empty() && !deadline.passed()) {
      board_.wait(0, [&] { return missing(board_, 0).empty(); });
    }
    if (const auto late = missing(board_, 0); !late.empty()) {
      const Board::Failure failure = lateness(late, 0, {}, timeout);
      fail(failure.kind, failure.message, failure.hint);
    }
  }

  // The later rank compares its posting with those of the earlier ones.
  void post(const Posting& posting) override {
    const std::uint64_t number = board_.num_posted(rank_);
    if (number >= Board::kDepth) wait_for_others(number - Board::kDepth);
    {
      const std::lock_guard lock(mutex_);
      last_ = posting;
    }
    board_.post(rank_, number, posting);
    for (int rank = 0; rank < board_.num_ranks(); ++rank) {
      const auto theirs = board_.posting(rank, number);
      if (theirs && !theirs->agrees_with(posting)) board_.set_failure(disagreement(board_, number, posting));
    }
    if (const auto failure = board_.failure()) fail(failure->kind, failure->message, failure->hint);
  }

  std::optional<Board::Failure> failure(bool) override {
    const std::uint64_t count = board_.num_posted(rank_);
    if (count != seen_) since_ = Stopwatch();
    seen_ = count;
    if (!board_.failure()) look_at_others(count - 1);
    return board_.failure();
  }

  void leave() override {
    board_.leave(rank_);
    const Deadline deadline(std::chrono::seconds(1));
    while (!all_have_left() && !board_.failure() && !deadline.passed()) {
      board_.wait(0, [this] { return all_have_left(); });
    }
  }

 private:
  bool all_have_left() const {
    for (int rank = 0; rank < board_.num_ranks(); ++rank) {
      if (!board_.has_left(rank)) return false;
    }
    return true;
  }

  // The board holds kDepth collectives per rank.
  void wait_for_others(std::uint64_t number) const {
    while (!missing(board_, number).empty() && !board_.failure()) {
      board_.wait(100, [&] { return missing(board_, number).empty(); });
    }
  }

  void look_at_others(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (const auto leaver = find_leaver(board_, number)) board_.set_failure(loss(*leaver, number, last_));
    for (const LostRank& lost : peers_.find_lost()) board_.set_failure(loss(lost, number, last_));
    const std::vector<int> late = missing(board_, number);
    if (!late.empty() && since_.elapsed() > timeout_) board_.set_failure(lateness(late, number, last_, timeout_));
  }

  Arena arena_;
  int rank_;
  std::chrono::milliseconds timeout_;
  Board board_;
  Peers peers_;
  std::mutex mutex_;
  Posting last_;  // the latest posting of this rank

  // Used by the watchdog thread only.
  std::uint64_t seen_ = 0;
  Stopwatch since_;
};

}  // namespace

std::unique_ptr<Roll> make_host_roll(c10d::Store& store, const World& world, std::chrono::milliseconds timeout) {
  return std::make_unique<HostRoll>(store, world, timeout);
}

}  // namespace tandem
