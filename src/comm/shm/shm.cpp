#include "comm/shm/shm.h"

#include <tandem/error.h>
#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <thread>
#include <utility>

#include "base/run_memory.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "comm/element_type.h"
#include "comm/shm/arena.h"
#include "comm/shm/exchange.h"
#include "comm/shm/peers.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kPieceBytes = 64 << 20;  // larger tensors are sent in pieces, to limit the size of copies
constexpr const char* kAddressKey = "comm/arena";

// Spinning helps only if every rank has its own core; otherwise it delays the ranks that are waited for.
int spins_for(int num_ranks) { return std::cmp_less_equal(num_ranks, std::thread::hardware_concurrency()) ? 4000 : 50; }

void transfer(const Tensor& from, const Tensor& to) {
  if (from.is_cuda() == to.is_cuda()) {
    to.copy_(from);
    return;
  }
  const Tensor pinned = torch::empty(from.sizes(), from.options().device(torch::kCPU).pinned_memory(true));
  pinned.copy_(from);
  to.copy_(pinned);
}

// The shared memory and this rank's region. Tensors in it may outlive the transport, hence the shared ownership.
struct SharedMemory {
  SharedMemory(Arena shared, int rank) : arena(std::move(shared)), region(arena.region(rank)) {}

  Arena arena;
  Region region;
};

class Shm : public Transport {
 public:
  // `pids`: the processes of all ranks, so that one that exits during set-up is noticed too.
  Shm(Arena arena, const World& world, const std::vector<int>& pids, const CommOptions& options);
  ~Shm() override;
  Shm(const Shm&) = delete;
  Shm& operator=(const Shm&) = delete;

  std::string_view name() const override { return "shm"; }
  torch::Device device() const override { return torch::kCPU; }
  void set_step(std::int64_t step) override { step_ = step; }
  bool failed() const override { return exchange_.failed() || !peers_.find_lost().empty(); }
  void confirm() override {}

  Work all_reduce(Tensor buffer, ReduceOp op, double divisor) override;
  Work all_gather(Tensor input, Tensor output) override;
  Work reduce_scatter(Tensor input, Tensor output, ReduceOp op) override;
  Work broadcast(Tensor buffer, int root) override;
  Work barrier() override {
    return start({}, {}, [] {});
  }

  Tensor empty(std::int64_t count, const torch::TensorOptions& options) override;
  std::unique_ptr<Transport> duplicate() override;

 private:
  bool is_shared(const Tensor& tensor) const {
    return tensor.is_cpu() && memory_->region.offset_of(tensor.const_data_ptr()).has_value();
  }
  Tensor shared_like(const Tensor& tensor, std::int64_t count) {
    return empty(count, tensor.options().device(torch::kCPU));
  }
  template <class Deliver>
  Work start(Posting posting, const Tensor& area, Deliver deliver);
  template <class Piece>
  Work in_pieces(const Tensor& tensor, std::int64_t copies, const Piece& start_piece);

  World world_;
  CommOptions options_;
  std::shared_ptr<SharedMemory> memory_;
  Board board_;
  mutable Peers peers_;  // opens pidfds on first use
  Exchange exchange_;
  std::deque<std::pair<std::uint64_t, Tensor>> in_use_;  // kept alive until all ranks have finished with them
  std::int64_t step_ = -1;
};

std::vector<std::span<std::byte>> regions_of(const Arena& arena) {
  std::vector<std::span<std::byte>> regions;
  for (int rank = 0; rank < arena.num_ranks(); ++rank) regions.push_back(arena.region(rank));
  return regions;
}

Shm::Shm(Arena arena, const World& world, const std::vector<int>& pids, const CommOptions& options)
    : world_(world),
      options_(options),
      memory_(std::make_shared<SharedMemory>(std::move(arena), world.rank)),
      board_(memory_->arena.board(), world.size),
      peers_(board_, world.rank, read_worker_env().control_fd),
      exchange_(board_, regions_of(memory_->arena), world.rank,
                {.timeout = options.join_timeout, .spins = spins_for(world.size), .find_lost = [this] {
                   return peers_.find_lost();
                 }}) {
  for (int rank = 0; rank < world.size; ++rank) board_.set_pid(rank, pids[rank]);
  barrier().wait();
  exchange_.set_timeout(options.timeout);
}

Shm::~Shm() {
  const bool is_a_fork = board_.pid(world_.rank) != ::getpid();
  if (!is_a_fork) board_.leave(world_.rank);
}

// Posts a collective on `area`, which is in shared memory; `deliver` copies the result from there.
template <class Deliver>
Work Shm::start(Posting posting, const Tensor& area, Deliver deliver) {
  posting.step = step_;
  while (!in_use_.empty() && exchange_.is_finished(in_use_.front().first)) in_use_.pop_front();
  if (area.defined() && area.numel() > 0) posting.offset = memory_->region.offset_of(area.const_data_ptr()).value();
  const std::uint64_t number = exchange_.start(posting);
  in_use_.emplace_back(number, area);
  return Work([this, number, area, deliver = std::move(deliver)] {
    exchange_.finish(number);
    deliver();
  });
}

// Calls `start_piece(begin, length)` for each piece of `tensor`; a copy needs `copies` times its memory. Copied pieces
// are finished one after the other, to limit memory: only the last is still in flight on return. Waiting for the last
// piece waits for all. An empty tensor is one piece.
template <class Piece>
Work Shm::in_pieces(const Tensor& tensor, std::int64_t copies, const Piece& start_piece) {
  const std::int64_t length = std::max<std::int64_t>(1, kPieceBytes / (tensor.element_size() * copies));
  Work work = start_piece(0, std::min(length, tensor.numel()));
  for (std::int64_t begin = length; begin < tensor.numel(); begin += length) {
    if (!is_shared(tensor)) work.wait();
    work = start_piece(begin, std::min(length, tensor.numel() - begin));
  }
  return work;
}

Work Shm::all_reduce(Tensor buffer, ReduceOp op, double divisor) {
  const Tensor flat = buffer.view(-1);
  return in_pieces(flat, 1, [&](std::int64_t begin, std::int64_t length) {
    const Posting posting{.collective = Collective::AllReduce,
                          .type = element_type(flat),
                          .op = element_op(op),
                          .count = static_cast<std::uint64_t>(length),
                          .divisor = divisor};
    const Tensor piece = flat.narrow(0, begin, length);
    if (is_shared(piece)) return start(posting, piece, [] {});
    const Tensor area = shared_like(flat, length);
    transfer(piece, area);
    return start(posting, area, [area, piece] { transfer(area, piece); });
  });
}

Work Shm::broadcast(Tensor buffer, int root) {
  const Tensor flat = buffer.view(-1);
  return in_pieces(flat, 1, [&](std::int64_t begin, std::int64_t length) {
    const Posting posting{.collective = Collective::Broadcast,
                          .type = element_type(flat),
                          .root = root,
                          .count = static_cast<std::uint64_t>(length)};
    const Tensor piece = flat.narrow(0, begin, length);
    if (is_shared(piece)) return start(posting, piece, [] {});
    const Tensor area = shared_like(flat, length);
    const bool is_root = world_.rank == root;
    if (is_root) transfer(piece, area);
    return start(posting, area, [area, piece, is_root] {
      if (!is_root) transfer(area, piece);
    });
  });
}

Work Shm::all_gather(Tensor input, Tensor output) {
  const Tensor flat = input.view(-1);
  const Tensor parts = output.view({world_.size, flat.numel()});
  return in_pieces(flat, world_.size, [&](std::int64_t begin, std::int64_t length) {
    const Posting posting{
        .collective = Collective::AllGather, .type = element_type(flat), .count = static_cast<std::uint64_t>(length)};
    const Tensor area = shared_like(flat, world_.size * length).view({world_.size, length});
    transfer(flat.narrow(0, begin, length), area[world_.rank]);
    return start(posting, area, [area, piece = parts.narrow(1, begin, length)] { transfer(area, piece); });
  });
}

Work Shm::reduce_scatter(Tensor input, Tensor output, ReduceOp op) {
  const Tensor flat = output.view(-1);
  const Tensor parts = input.view({world_.size, flat.numel()});
  return in_pieces(flat, world_.size, [&](std::int64_t begin, std::int64_t length) {
    const Posting posting{.collective = Collective::ReduceScatter,
                          .type = element_type(flat),
                          .op = element_op(op),
                          .count = static_cast<std::uint64_t>(length)};
    const Tensor area = shared_like(flat, world_.size * length).view({world_.size, length});
    transfer(parts.narrow(1, begin, length), area);
    return start(posting, area,
                 [mine = area[world_.rank], piece = flat.narrow(0, begin, length)] { transfer(mine, piece); });
  });
}

Tensor Shm::empty(std::int64_t count, const torch::TensorOptions& options) {
  if (!options.device().is_cpu()) return torch::empty(count, options);
  const std::size_t size = static_cast<std::size_t>(count) * options.dtype().itemsize();
  std::byte* memory = memory_->region.allocate(size);
  const auto release = [shared = memory_, memory, size](void*) { shared->region.release(memory, size); };
  return torch::from_blob(memory, count, release, torch::TensorOptions(options.dtype()));
}

std::unique_ptr<Transport> Shm::duplicate() {
  std::optional<Arena> mine;
  std::array<char, 64> address{};
  if (world_.is_main()) {
    mine.emplace(Arena::create(world_.size, Board::size(world_.size)));
    mine->address().copy(address.data(), address.size() - 1);
  }
  broadcast(torch::from_blob(address.data(), address.size(), torch::kByte), 0).wait();
  Arena arena = mine ? *std::move(mine) : Arena::open(address.data(), world_.size, Board::size(world_.size));
  std::vector<int> pids;
  for (int rank = 0; rank < world_.size; ++rank) pids.push_back(board_.pid(rank));
  return std::make_unique<Shm>(std::move(arena), world_, pids, options_);
}

Arena meet_in_arena(Store& store, const World& world) {
  const std::size_t board_size = Board::size(world.size);
  if (const auto fd = inherited_memory(read_worker_env())) {
    return Arena::inherit(*fd, store.meeting(), world.size, board_size);
  }
  if (!world.is_main()) return Arena::open(store.get(kAddressKey), world.size, board_size);
  Arena arena = Arena::create(world.size, board_size);
  store.set(kAddressKey, arena.address());
  return arena;
}

std::vector<int> exchange_pids(Store& store) {
  std::vector<int> pids;
  for (const std::string& pid : store.gather("comm/pid", str(::getpid()))) {
    pids.push_back(static_cast<int>(to_integer(pid).value_or(0)));
  }
  return pids;
}

}  // namespace

std::unique_ptr<Transport> make_shm(Store& store, const CommOptions& options) {
  const World& world = store.world();
  const std::vector<int> pids = exchange_pids(store);
  return std::make_unique<Shm>(meet_in_arena(store, world), world, pids, options);
}

}  // namespace tandem
