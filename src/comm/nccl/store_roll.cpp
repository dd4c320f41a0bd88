#include <tandem/units.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "comm/nccl/roll.h"
#include "comm/shm/failure.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeat(500);
constexpr milliseconds kSilence(15000);  // hosts may be slow, and networks too
constexpr milliseconds kSuspiciousSilence(2000);

class StoreRoll : public Roll {
 public:
  StoreRoll(c10d::Store& store, const World& world, milliseconds timeout)
      : store_(store.clone()), world_(world), timeout_(timeout), peers_(world.size) {}

  void post(const Posting& posting) override {
    const std::lock_guard lock(mutex_);
    last_ = posting;
    ++num_posted_;
    since_post_ = Stopwatch();
  }

  std::optional<Board::Failure> failure(bool is_suspicious) override {
    if (failure_ || since_beat_.elapsed() < kBeat) return failure_;
    since_beat_ = Stopwatch();
    try {
      store_->add(key("beat", world_.rank), 1);
      look_at_others(is_suspicious ? kSuspiciousSilence : kSilence);
    } catch (const c10::Error&) {
      failure_ = Board::Failure{.message = "comm: the store was lost: rank 0, which hosts it, has probably ended",
                                .hint = "look at the output of rank 0"};
    }
    return failure_;
  }

  void leave() override {
    try {
      const Deadline deadline(std::chrono::seconds(1));
      std::int64_t num_left = store_->add("roll/left", 1);
      store_->add(key("left", world_.rank), 1);
      while (num_left < world_.size && !failure_ && !deadline.passed()) {
        std::this_thread::sleep_for(milliseconds(10));
        num_left = store_->add("roll/left", 0);
      }
    } catch (const c10::Error&) {
      // The one who hosts the store has left before: nobody is there to be told.
    }
  }

 private:
  struct Peer {
    std::int64_t beats = 0;
    std::int64_t num_posted = 0;
    Stopwatch since;
  };

  static std::string key(const char* what, int rank) { return str("roll/", what, '/', rank); }

  void look_at_others(milliseconds patience) {
    const std::lock_guard lock(mutex_);
    // How far this rank has come, for the others; a counter can be read without waiting for it.
    store_->add(key("posted", world_.rank), num_posted_ - told_);
    told_ = num_posted_;
    std::vector<int> late;
    for (int rank = 0; rank < world_.size; ++rank) {
      Peer& peer = peers_[rank];
      const std::int64_t beats = store_->add(key("beat", rank), 0);
      if (beats != peer.beats) peer.since = Stopwatch();
      peer.beats = beats;
      if (store_->add(key("posted", rank), 0) < num_posted_) late.push_back(rank);
      const bool has_left = store_->add(key("left", rank), 0) > 0;
      const bool is_silent = rank != world_.rank && peer.since.elapsed() > patience;
      if (has_left && !late.empty() && late.back() == rank) return set(rank, "it left before");
      if (is_silent && !has_left) return set(rank, str("no sign of life for ", duration_text(patience)));
    }
    if (!late.empty() && since_post_.elapsed() > timeout_) failure_ = lateness(late, num_posted_ - 1, last_, timeout_);
  }

  void set(int rank, std::string how) {
    failure_ = loss({.rank = rank, .how = std::move(how)}, num_posted_ - 1, last_);
  }

  c10::intrusive_ptr<c10d::Store> store_;  // a connection of its own: the watching thread may be waiting on it
  World world_;
  milliseconds timeout_;
  std::mutex mutex_;
  Posting last_;
  std::int64_t num_posted_ = 0;
  Stopwatch since_post_;

  // Of the thread that watches.
  std::vector<Peer> peers_;
  std::int64_t told_ = 0;
  Stopwatch since_beat_;
  std::optional<Board::Failure> failure_;
};

}  // namespace

std::unique_ptr<Roll> make_store_roll(c10d::Store& store, const World& world, milliseconds timeout) {
  return std::make_unique<StoreRoll>(store, world, timeout);
}

}  // namespace tandem
