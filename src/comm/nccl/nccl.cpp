#include "comm/nccl/nccl.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <atomic>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <torch/cuda.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "comm/element_type.h"
#include "comm/nccl/roll.h"
#include "comm/store_table.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;
using torch::Tensor;

constexpr milliseconds kWatch(20);
constexpr milliseconds kPatience(4000);  // for the roll to identify the lost rank

c10d::ReduceOp to_c10d(ReduceOp op) {
  if (op == ReduceOp::Sum) return c10d::ReduceOp::SUM;
  return op == ReduceOp::Min ? c10d::ReduceOp::MIN : c10d::ReduceOp::MAX;
}

// c10d's own threads must not end the process: the watchdog below decides when the run has failed.
void set_up_c10d() {
  set_environment_variable("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2");  // abort the communicator, not the process
  set_environment_variable("TORCH_NCCL_ENABLE_MONITORING", "0");
}

using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;

// A watchdog thread that aborts the group when the roll reports a failure, and keeps the failure. Its state is shared,
// because the thread may still be aborting the group after this object is destroyed.
class Watch {
 public:
  Watch(std::unique_ptr<Roll> roll, Group group);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Roll& roll() const { return *state_->roll; }
  bool has_failed() const { return state_->has_failed; }
  void throw_if_failed() const;

  // NCCL may notice first that a peer is lost, but not which one: waits a moment for the roll to identify it.
  [[noreturn]] void fail_with(const std::string& what_nccl_says);

 private:
  struct State {
    std::unique_ptr<Roll> roll;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_over = false;
    std::optional<Board::Failure> failure;
    std::atomic<bool> has_failed = false;
    std::atomic<bool> is_suspicious = false;  // NCCL reported an error
  };
  static void run(State& state, c10d::ProcessGroupNCCL& group);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

Watch::Watch(std::unique_ptr<Roll> roll, Group group) {
  state_->roll = std::move(roll);
  thread_ = std::thread([state = state_, group = std::move(group)] { run(*state, *group); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
  }
  state_->changed.notify_all();
  if (has_failed()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

// c10d neither throws nor returns when a peer dies. After abort() the device continues with invalid results: so the
// flag is set before, and checked after every wait.
void Watch::run(State& state, c10d::ProcessGroupNCCL& group) {
  std::unique_lock lock(state.mutex);
  while (!state.changed.wait_for(lock, kWatch, [&] { return state.is_over; })) {
    lock.unlock();
    auto failure = state.roll->failure(state.is_suspicious);
    lock.lock();
    if (!failure || state.is_over) continue;
    state.failure = std::move(failure);
    state.has_failed = true;
    lock.unlock();
    state.changed.notify_all();
    return group.abort();
  }
}

void Watch::throw_if_failed() const {
  if (!has_failed()) return;
  const std::lock_guard lock(state_->mutex);
  fail(state_->failure->kind, state_->failure->message, state_->failure->hint);
}

void Watch::fail_with(const std::string& what_nccl_says) {
  state_->is_suspicious = true;
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, kPatience, [this] { return state_->failure.has_value(); });
  }
  throw_if_failed();
  fail(ErrorKind::Comm, str("nccl: ", what_nccl_says.substr(0, what_nccl_says.find('\n'))),
       "set NCCL_DEBUG=INFO for details, or a longer --timeout");
}

class Nccl : public Transport {
 public:
  Nccl(c10::intrusive_ptr<c10d::Store> store, const World& world, torch::Device device, milliseconds timeout);
  ~Nccl() override;
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  std::string_view name() const override { return "nccl"; }
  torch::Device device() const override { return device_; }
  void set_step(std::int64_t step) override { step_ = step; }
  bool failed() const override { return watch_->has_failed(); }

  Work all_reduce(Tensor buffer, ReduceOp op, double divisor) override;
  Work all_gather(Tensor input, Tensor output) override;
  Work reduce_scatter(Tensor input, Tensor output, ReduceOp op) override;
  Work broadcast(Tensor buffer, int root) override;
  Work barrier() override;
  void confirm() override;

  Tensor empty(std::int64_t count, const torch::TensorOptions& options) override {
    return torch::empty(count, options);
  }
  std::unique_ptr<Transport> duplicate() override;

 private:
  using GroupWork = c10::intrusive_ptr<c10d::Work>;

  template <class Start>
  Work run(Posting posting, const Tensor& tensor, const Start& start);
  template <class Call>
  auto translated(const Call& call);

  c10::intrusive_ptr<c10d::Store> store_;
  World world_;
  torch::Device device_;
  milliseconds timeout_;
  Group group_;
  std::optional<Watch> watch_;
  GroupWork last_;
  std::int64_t step_ = -1;
  int num_duplicates_ = 0;
};

Nccl::Nccl(c10::intrusive_ptr<c10d::Store> store, const World& world, torch::Device device, milliseconds timeout)
    : store_(std::move(store)), world_(world), device_(device), timeout_(timeout) {
  set_up_c10d();
  auto roll = world.num_nodes == 1 ? make_host_roll(*store_, world, timeout) : make_store_roll(*store_, world, timeout);
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  group_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(store_, world.rank, world.size, options);
  group_->eagerConnectSingleDevice(device_);  // a lazy connect could not be interrupted
  watch_.emplace(std::move(roll), group_);
}

Nccl::~Nccl() {
  try {
    confirm();
    watch_->roll().leave();
  } catch (const Error&) {
    // Already reported by the wait that failed.
  }
  const bool has_failed = watch_->has_failed();
  watch_.reset();
  try {
    if (!has_failed) group_->abort();  // shutdown() may block on other ranks
  } catch (const c10::Error&) {
    // A device error, already reported.
  }
  if (has_failed) group_.release();  // destroying a group that has lost a rank may block for ever
}

template <class Call>
auto Nccl::translated(const Call& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    watch_->fail_with(error.what_without_backtrace());
  }
}

template <class Start>
Work Nccl::run(Posting posting, const Tensor& tensor, const Start& start) {
  if (tensor.device() != device_) {
    fail(ErrorKind::Comm,
         str("nccl: a tensor on ", tensor.device().str(), ", but the device of this rank is ", device_.str()),
         "move the module and its inputs to it: module->to(comm.device())");
  }
  watch_->throw_if_failed();
  posting.step = step_;
  posting.type = element_type(tensor);
  watch_->roll().post(posting);
  if (tensor.numel() == 0) return {};
  last_ = translated(start);
  return Work([this, work = last_] {
    translated([&] { work->wait(); });
    watch_->throw_if_failed();
  });
}

Work Nccl::all_reduce(Tensor buffer, ReduceOp op, double divisor) {
  const Posting posting{.collective = Collective::AllReduce,
                        .op = element_op(op),
                        .count = static_cast<std::uint64_t>(buffer.numel()),
                        .divisor = divisor};
  // NCCL's AVG divides before it sums: the same bits if the world size is a power of two.
  const bool is_power_of_two = std::has_single_bit(static_cast<unsigned>(world_.size));
  const bool is_wide = buffer.scalar_type() == torch::kFloat || buffer.scalar_type() == torch::kDouble;
  const bool is_exact_mean = divisor != 1 && divisor == world_.size && is_power_of_two && is_wide;
  Work work = run(posting, buffer, [&] {
    std::vector<Tensor> tensors = {buffer};
    c10d::AllreduceOptions options;
    options.reduceOp = is_exact_mean ? c10d::ReduceOp(c10d::ReduceOp::AVG) : to_c10d(op);
    return group_->allreduce(tensors, options);
  });
  if (is_exact_mean || divisor == 1) return work;
  return std::move(work).then([buffer, divisor] { buffer.div_(divisor); });
}

Work Nccl::all_gather(Tensor input, Tensor output) {
  const Posting posting{.collective = Collective::AllGather, .count = static_cast<std::uint64_t>(input.numel())};
  return run(posting, input, [&] { return group_->_allgather_base(output, input); });
}

Work Nccl::reduce_scatter(Tensor input, Tensor output, ReduceOp op) {
  const Posting posting{.collective = Collective::ReduceScatter,
                        .op = element_op(op),
                        .count = static_cast<std::uint64_t>(output.numel())};
  return run(posting, output, [&] {
    c10d::ReduceScatterOptions options;
    options.reduceOp = to_c10d(op);
    return group_->_reduce_scatter_base(output, input, options);
  });
}

Work Nccl::broadcast(Tensor buffer, int root) {
  const Posting posting{
      .collective = Collective::Broadcast, .root = root, .count = static_cast<std::uint64_t>(buffer.numel())};
  return run(posting, buffer, [&] {
    std::vector<Tensor> tensors = {buffer};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return group_->broadcast(tensors, options);
  });
}

Work Nccl::barrier() {
  const Tensor token = torch::zeros({1}, device_);
  Work work = run({.collective = Collective::Barrier}, token, [&] {
    std::vector<Tensor> tensors = {token};
    return group_->allreduce(tensors);
  });
  return std::move(work).then([this] { confirm(); });
}

void Nccl::confirm() {
  if (!last_) return;
  translated([this] {
    while (!watch_->has_failed() && !last_->isCompleted()) std::this_thread::yield();
  });
  watch_->throw_if_failed();
  if (const auto error = last_->exception()) {
    translated([&] { std::rethrow_exception(error); });
  }
}

std::unique_ptr<Transport> Nccl::duplicate() {
  auto store = c10::make_intrusive<c10d::PrefixStore>(str("duplicate/", num_duplicates_++), store_);
  return std::make_unique<Nccl>(std::move(store), world_, device_, timeout_);
}

}  // namespace

bool nccl_is_available() { return torch::cuda::is_available(); }

std::unique_ptr<Transport> make_nccl(Store& store, torch::Device device, milliseconds timeout) {
  auto table = c10::make_intrusive<c10d::PrefixStore>("nccl", detail::StoreTable::of(store));
  return std::make_unique<Nccl>(std::move(table), store.world(), device, timeout);
}

}  // namespace tandem
