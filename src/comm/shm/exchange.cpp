#include "comm/shm/exchange.h"

#include <tandem/error.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace tandem {
namespace {

constexpr std::uint64_t kAllChunks = std::numeric_limits<std::uint64_t>::max();
constexpr std::chrono::milliseconds kGrace(200);  // for the chunks of the other ranks, once a rank is lost

// How a collective is split: into sections, and these into chunks.
struct Cut {
  std::uint64_t num_sections;
  std::uint64_t chunk_elements;
  std::uint64_t chunks_per_section;

  std::uint64_t num_chunks() const { return num_sections * chunks_per_section; }
};

// A buffer has one section, or one for each rank's part.
std::uint64_t num_sections(const Posting& posting, int num_ranks) {
  const bool has_parts = posting.collective == Collective::AllGather || posting.collective == Collective::ReduceScatter;
  return has_parts ? static_cast<std::uint64_t>(num_ranks) : 1;
}

Cut cut(const Posting& posting, int num_ranks, std::size_t chunk_bytes) {
  const std::uint64_t chunk_elements = chunk_bytes / element_size(posting.type);
  // An empty collective has one chunk too: it is processed only after the postings of all ranks were compared.
  const std::uint64_t chunks = std::max<std::uint64_t>(1, (posting.count + chunk_elements - 1) / chunk_elements);
  return {
      .num_sections = num_sections(posting, num_ranks), .chunk_elements = chunk_elements, .chunks_per_section = chunks};
}

// Whether the buffer lies in the region: another rank may have written anything.
bool is_inside(const Posting& posting, int num_ranks, std::span<const std::byte> region) {
  const std::uint64_t size = num_sections(posting, num_ranks) * posting.count * element_size(posting.type);
  return posting.offset <= region.size() && size <= region.size() - posting.offset;
}

void copy_from(std::size_t source, const std::vector<std::byte*>& places, std::size_t size) {
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (rank != source) std::memcpy(places[rank], places[source], size);
  }
}

}  // namespace

Exchange::Exchange(Board board, std::vector<std::span<std::byte>> regions, int rank, ExchangeOptions options)
    : board_(board), regions_(std::move(regions)), rank_(rank), options_(std::move(options)) {}

class Exchange::Turn {
 public:
  explicit Turn(std::atomic<bool>& is_busy) : is_busy_(is_busy) {
    if (is_busy_.exchange(true)) {
      fail(ErrorKind::Config, "comm: two threads use the communicator at the same time",
           "wait for a collective in the thread that started it");
    }
  }
  ~Turn() { is_busy_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>& is_busy_;
};

std::uint64_t Exchange::start(const Posting& posting) {
  const Turn turn(*is_busy_);
  throw_if_failed();
  const std::uint64_t number = next_;
  if (number >= Board::kDepth) finish_up_to(number - Board::kDepth);
  ++next_;
  const std::uint64_t num_chunks = cut(posting, board_.num_ranks(), options_.chunk_bytes).num_chunks();
  board_.post(rank_, number, posting);
  queue_.push_back({.number = number, .posting = posting, .num_chunks = num_chunks, .buffers = {}});
  const auto num_ranks = static_cast<std::uint64_t>(board_.num_ranks());
  for (Operation& operation : queue_) advance(operation, (operation.num_chunks + num_ranks - 1) / num_ranks);
  return number;
}

void Exchange::finish(std::uint64_t number) {
  const Turn turn(*is_busy_);
  finish_up_to(number);
}

void Exchange::finish_up_to(std::uint64_t number) {
  while (!queue_.empty() && queue_.front().number <= number) {
    complete(queue_.front());
    queue_.pop_front();
  }
}

void Exchange::complete(Operation& operation) {
  advance(operation, kAllChunks);
  const Stopwatch waited;
  while (!is_done(operation)) {
    board_.wait(options_.spins,
                [&] { return is_done(operation) || (operation.buffers.empty() && all_have_posted(operation.number)); });
    advance(operation, kAllChunks);
    if (!is_done(operation)) check(operation, waited.elapsed());
  }
}

// Processes up to `max_chunks` unclaimed chunks.
void Exchange::advance(Operation& operation, std::uint64_t max_chunks) {
  if (operation.buffers.empty() && !find_buffers(operation)) return;
  for (std::uint64_t i = 0; i < max_chunks; ++i) {
    const auto chunk = board_.claim(operation.number, operation.num_chunks);
    if (!chunk) return;
    run_chunk(operation, *chunk);
    board_.finish_chunk(operation.number, operation.num_chunks);
  }
}

// False until all ranks have posted, and after the slots were reused.
bool Exchange::find_buffers(Operation& operation) {
  places_.clear();
  for (int rank = 0; rank < board_.num_ranks(); ++rank) {
    const auto posting = board_.posting(rank, operation.number);
    if (posting && !posting->agrees_with(operation.posting)) {
      fail_everywhere(disagreement(board_, operation.number, operation.posting));
    }
    if (!posting) continue;
    if (!is_inside(*posting, board_.num_ranks(), regions_[rank])) {
      fail_everywhere({.message = str("comm: rank ", rank, " posted a buffer outside of its shared memory"),
                       .hint = "something has overwritten the shared memory of the run; start it again"});
    }
    places_.push_back(regions_[rank].data() + posting->offset);
  }
  if (places_.size() < regions_.size()) return false;
  operation.buffers = places_;
  return true;
}

void Exchange::run_chunk(const Operation& operation, std::uint64_t chunk) {
  const Posting& posting = operation.posting;
  const Cut cut = tandem::cut(posting, board_.num_ranks(), options_.chunk_bytes);
  const std::uint64_t section = chunk / cut.chunks_per_section;
  const std::uint64_t begin = chunk % cut.chunks_per_section * cut.chunk_elements;
  const std::uint64_t count = std::min(cut.chunk_elements, posting.count - begin);
  const std::size_t size = element_size(posting.type);

  places_ = operation.buffers;
  for (std::byte*& place : places_) place += (section * posting.count + begin) * size;
  switch (posting.collective) {
    case Collective::AllReduce: return reduce(posting.type, posting.op, posting.divisor, places_, places_, count);
    case Collective::ReduceScatter:
      return reduce(posting.type, posting.op, posting.divisor, places_, {&places_[section], 1}, count);
    case Collective::AllGather: return copy_from(section, places_, count * size);
    case Collective::Broadcast: return copy_from(static_cast<std::size_t>(posting.root), places_, count * size);
    case Collective::Barrier: return;
  }
}

bool Exchange::all_have_posted(std::uint64_t number) const {
  for (int rank = 0; rank < board_.num_ranks(); ++rank) {
    if (board_.num_posted(rank) <= number) return false;
  }
  return true;
}

// Looks for failures while a collective is not finished.
void Exchange::check(const Operation& operation, std::chrono::nanoseconds waited) {
  throw_if_failed();
  const auto& [number, posting, num_chunks, buffers] = operation;
  if (const auto leaver = find_leaver(board_, number)) fail_everywhere(loss(*leaver, number, posting));
  const std::vector<int> late = missing(board_, number);
  for (const LostRank& lost : options_.find_lost()) {
    const bool is_awaited = board_.num_posted(lost.rank) <= number || (late.empty() && waited > kGrace);
    if (is_awaited) fail_everywhere(loss(lost, number, posting));
  }
  if (waited > options_.timeout) fail_everywhere(lateness(late, number, posting, options_.timeout));
}

void Exchange::fail_everywhere(const Board::Failure& failure) {
  has_failed_ = true;
  board_.set_failure(failure);
  throw_if_failed();
  fail(failure.kind, failure.message, failure.hint);
}

void Exchange::throw_if_failed() const {
  if (const auto failure = board_.failure()) fail(failure->kind, failure->message, failure->hint);
}

}  // namespace tandem
