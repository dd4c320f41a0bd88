#include <tandem/units.h>

#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "comm/nccl/roll.h"
#include "comm/shm/failure.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeat(500);
constexpr milliseconds kSilence(15000);  // generous, for slow hosts and networks
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
      failure_ = Board::Failure{.message = "comm: the store was lost: rank 0, which hosts it, has probably exited",
                                .hint = "check the output of rank 0"};
    }
    return failure_;
  }

  void leave() override {
    try {
      tell_how_far();
      store_->add(key("left", world_.rank), 1);
      const Deadline deadline(std::chrono::seconds(1));
      std::int64_t num_left = store_->add("roll/left", 1);
      while (num_left < world_.size && !deadline.passed()) {
        std::this_thread::sleep_for(milliseconds(10));
        num_left = store_->add("roll/left", 0);
      }
    } catch (const c10::Error&) {
      // The host of the store has already left.
    }
  }

 private:
  struct Peer {
    std::int64_t beats = 0;
    Stopwatch since;
  };

  static std::string key(const char* what, int rank) { return str("roll/", what, '/', rank); }

  struct Progress {
    std::int64_t num_posted;
    Posting last;
    bool is_overdue;
  };

  // Publishes the progress of this rank as a counter, which can be read without blocking.
  Progress tell_how_far() {
    std::int64_t news = 0;
    Progress now{};
    {
      const std::lock_guard lock(mutex_);
      now = {.num_posted = num_posted_, .last = last_, .is_overdue = since_post_.elapsed() > timeout_};
      news = num_posted_ - std::exchange(told_, num_posted_);
    }
    store_->add(key("posted", world_.rank), news);
    return now;
  }

  void look_at_others(milliseconds patience) {
    const Progress now = tell_how_far();
    const auto lose = [&](int rank, std::string how) {
      failure_ = loss({.rank = rank, .how = std::move(how)}, now.num_posted - 1, now.last);
    };
    std::vector<int> late;
    for (int rank = 0; rank < world_.size; ++rank) {
      Peer& peer = peers_[rank];
      const std::int64_t beats = store_->add(key("beat", rank), 0);
      if (beats != peer.beats) peer.since = Stopwatch();
      peer.beats = beats;
      const bool has_left = store_->add(key("left", rank), 0) > 0;
      const bool is_late = store_->add(key("posted", rank), 0) < now.num_posted;
      if (is_late) late.push_back(rank);
      if (is_late && has_left) return lose(rank, "it left before");
      const bool is_silent = rank != world_.rank && peer.since.elapsed() > patience;
      if (is_silent && !has_left) return lose(rank, str("no heartbeat for ", duration_text(patience)));
    }
    if (!late.empty() && now.is_overdue) failure_ = lateness(late, now.num_posted - 1, now.last, timeout_);
  }

  c10::intrusive_ptr<c10d::Store> store_;  // a separate connection: the watchdog thread may block on it
  World world_;
  milliseconds timeout_;
  std::mutex mutex_;
  Posting last_;
  std::int64_t num_posted_ = 0;
  Stopwatch since_post_;
  std::int64_t told_ = 0;

  // Used by the watchdog thread only.
  std::vector<Peer> peers_;
  Stopwatch since_beat_;
  std::optional<Board::Failure> failure_;
};

}  // namespace

std::unique_ptr<Roll> make_store_roll(c10d::Store& store, const World& world, milliseconds timeout) {
  return std::make_unique<StoreRoll>(store, world, timeout);
}

}  // namespace tandem
