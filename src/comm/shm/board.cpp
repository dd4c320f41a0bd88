#include "comm/shm/board.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/clock.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kSleep(5);

// States of the failure record.
constexpr std::uint32_t kNone = 0;
constexpr std::uint32_t kBeingWritten = 1;
constexpr std::uint32_t kThere = 2;

// A word of Progress counts the chunks of one collective. Numbers only grow: a smaller number means that the count is
// still 0, a larger one that the collective is finished.
constexpr std::uint64_t kCountBits = 24;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

struct Counted {
  std::uint64_t count = 0;
  bool is_over = false;
};

Counted read_count(std::uint64_t word, std::uint64_t number) {
  const std::uint64_t tag = word >> kCountBits;
  return {.count = tag == number + 1 ? word & kCountMask : 0, .is_over = tag > number + 1};
}

std::uint64_t write_count(std::uint64_t number, std::uint64_t count) { return (number + 1) << kCountBits | count; }

}  // namespace

std::size_t Board::size(int num_ranks) {
  const auto ranks = static_cast<std::size_t>(num_ranks);
  return sizeof(Header) + sizeof(Progress) * kDepth + (sizeof(RankState) + sizeof(Slot) * kDepth) * ranks + 2 * kLine;
}

Board::Board(std::byte* memory, int num_ranks)
    : num_ranks_(num_ranks),
      header_(reinterpret_cast<Header*>(memory)),
      progress_(reinterpret_cast<Progress*>(memory + (sizeof(Header) + 2 * kLine - 1) / (2 * kLine) * (2 * kLine))),
      states_(reinterpret_cast<RankState*>(progress_ + kDepth)),
      slots_(reinterpret_cast<Slot*>(states_ + num_ranks)) {}

// The tag is cleared first, so that a concurrent reader sees an incomplete slot and retries.
void Board::post(int rank, std::uint64_t number, const Posting& posting) {
  Slot& slot = this->slot(rank, number);
  slot.tag = 0;
  const PostingWords words = pack(posting);
  for (std::size_t i = 0; i < words.size(); ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.tag = number + 1;
  states_[rank].num_posted = number + 1;
  wake();
}

std::optional<Posting> Board::posting(int rank, std::uint64_t number) const {
  const Slot& slot = this->slot(rank, number);
  if (slot.tag != number + 1) return std::nullopt;
  PostingWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.tag != number + 1) return std::nullopt;
  return unpack(words);
}

std::optional<std::uint64_t> Board::claim(std::uint64_t number, std::uint64_t num_chunks) {
  Word& claimed = progress_[number % kDepth].claimed;
  std::uint64_t word = claimed;
  while (true) {
    const Counted now = read_count(word, number);
    if (now.is_over || now.count >= num_chunks) return std::nullopt;
    if (claimed.compare_exchange_weak(word, write_count(number, now.count + 1))) return now.count;
  }
}

void Board::finish_chunk(std::uint64_t number, std::uint64_t num_chunks) {
  Word& done = progress_[number % kDepth].done;
  std::uint64_t word = done;
  while (!done.compare_exchange_weak(word, write_count(number, read_count(word, number).count + 1))) {
  }
  if (read_count(word, number).count + 1 == num_chunks) wake();
}

bool Board::is_done(std::uint64_t number, std::uint64_t num_chunks) const {
  const Counted now = read_count(progress_[number % kDepth].done, number);
  return now.is_over || now.count == num_chunks;
}

void Board::set_failure(const Failure& failure) {
  std::uint32_t nobody = kNone;
  if (!header_->failure_state.compare_exchange_strong(nobody, kBeingWritten)) {
    // Another rank is writing its text; it may die before it is done.
    const Deadline deadline(kSleep);
    while (header_->failure_state != kThere && !deadline.passed()) __builtin_ia32_pause();
    return;
  }
  header_->failure_kind = static_cast<std::uint32_t>(failure.kind);
  failure.message.copy(header_->message.data(), header_->message.size() - 1);
  failure.hint.copy(header_->hint.data(), header_->hint.size() - 1);
  header_->failure_state = kThere;
  wake();
}

std::optional<Board::Failure> Board::failure() const {
  if (header_->failure_state != kThere) return std::nullopt;
  const auto text = [](const auto& chars) { return std::string(chars.data(), ::strnlen(chars.data(), chars.size())); };
  return Failure{.kind = static_cast<ErrorKind>(header_->failure_kind),
                 .message = text(header_->message),
                 .hint = text(header_->hint)};
}

void Board::leave(int rank) {
  states_[rank].has_left = true;
  wake();
}

void Board::sleep(std::uint32_t epoch) const {
  futex_wait(header_->epoch, epoch, std::chrono::steady_clock::now() + kSleep);
}

// A sleeper increments the count before it checks its condition again; the caller here has changed the board before it
// reads the count. So no wake-up is lost.
void Board::wake() const {
  if (header_->num_sleepers == 0) return;
  ++header_->epoch;
  futex_wake_all(header_->epoch);
}

}  // namespace tandem
