#include <ATen/MemoryOverlap.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/check_range.h"
#include "base/text.h"
#include "comm/choose_transport.h"
#include "comm/store.h"
#include "comm/transport.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::array kTypes = {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16,
                               torch::kInt,   torch::kLong,   torch::kByte, torch::kBool};

std::string shape_text(const Tensor& tensor) {
  return str(torch::toString(tensor.scalar_type()), ' ', list_text(tensor.sizes()));
}

void check_type(std::string_view what, const Tensor& tensor) {
  if (!tensor.defined()) fail(ErrorKind::Config, str(what, ": the tensor is undefined"), "assign a tensor to it first");
  if (tensor.layout() != torch::kStrided) {
    fail(ErrorKind::Config, str(what, ": sparse tensors are not supported"), "convert it: tensor.to_dense()");
  }
  if (std::find(kTypes.begin(), kTypes.end(), tensor.scalar_type()) != kTypes.end()) return;
  fail(ErrorKind::Config, str(what, ": tensors of type ", torch::toString(tensor.scalar_type()), " are not supported"),
       "convert it to one of float, double, half, bfloat16, int, long, uint8, bool");
}

void check_reduction(std::string_view what, const Tensor& tensor, ReduceOp op, double divisor) {
  if (op == ReduceOp::Sum && tensor.scalar_type() == torch::kBool) {
    fail(ErrorKind::Config, str(what, ": bool tensors cannot be summed"),
         "use ReduceOp::Max for a logical or, ReduceOp::Min for a logical and, or convert to int to count");
  }
  if (divisor != 1 && (op != ReduceOp::Sum || !tensor.is_floating_point())) {
    fail(ErrorKind::Config, str(what, ": only sums of floating-point tensors can be divided, not ", shape_text(tensor)),
         "convert it to double first, or divide the result yourself");
  }
}

// `whole` must hold one `part` per rank.
void check_parts(std::string_view what, const Tensor& part, const Tensor& whole, int size) {
  if (part.scalar_type() == whole.scalar_type() && part.device() == whole.device() &&
      part.numel() * size == whole.numel()) {
    return;
  }
  fail(ErrorKind::Config,
       str(what, ": ", shape_text(whole), " on ", whole.device().str(), " does not hold ", size, " times ",
           shape_text(part), " on ", part.device().str()),
       "both need the same type and device, and the larger one world-size times the elements of the smaller");
}

// Every element of an output needs its own memory.
void check_output(std::string_view what, const Tensor& tensor) {
  check_type(what, tensor);
  if (at::has_internal_overlap(tensor) != at::MemOverlap::Yes) return;
  fail(ErrorKind::Config, str(what, ": elements of the tensor ", shape_text(tensor), " share memory"),
       "copy an expanded tensor first: tensor.clone()");
}

constexpr std::int64_t kMaxDimensions = 15;

// `shape` describes the tensor of another rank: the number of dimensions, then the sizes.
void check_same_but_first(const Tensor& tensor, const Tensor& shape, int rank) {
  bool is_same = shape[0].item<std::int64_t>() == tensor.dim();
  for (std::int64_t i = 1; is_same && i < tensor.dim(); ++i) {
    is_same = shape[i + 1].item<std::int64_t>() == tensor.size(i);
  }
  if (is_same) return;
  fail(ErrorKind::Config, str("all_gather_uneven: ", shape_text(tensor), " here, but a different shape on rank ", rank),
       "tensors may differ only in their first dimension");
}

// What a transport is given: a contiguous tensor; bool as uint8.
Tensor transport_view(const Tensor& tensor) {
  const Tensor flat = tensor.detach().contiguous();
  return flat.scalar_type() == torch::kBool ? flat.view(torch::kByte) : flat;
}

// Copies the result from `flat` to `tensor` after `wait`, unless they share memory.
Work deliver(Work work, const Tensor& flat, const Tensor& tensor) {
  if (tensor.is_contiguous()) return work;
  return std::move(work).then([flat, tensor = tensor.detach()] {
    tensor.copy_(tensor.scalar_type() == torch::kBool ? flat.view(torch::kBool) : flat);
  });
}

}  // namespace

// Held while a collective is started. With two threads the order of collectives would be random.
class Communicator::Turn {
 public:
  Turn(Communicator& comm, std::string_view what, std::size_t bytes) : busy_(*comm.busy_) {
    const bool is_in_backward = torch::autograd::get_current_graph_task_id() != -1;
    const bool is_ours = std::this_thread::get_id() == comm.thread_ || is_in_backward;
    if (!is_ours || busy_.exchange(true)) {
      fail(ErrorKind::Config, str(what, ": called from a second thread"),
           "call collectives only from the thread that created the communicator, or from a backward pass it started");
    }
    ++comm.stats_.collectives;
    comm.stats_.bytes += static_cast<std::int64_t>(bytes);
  }
  ~Turn() { busy_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>& busy_;
};

void validate(const CommOptions& o) {
  check_duration("timeout", o.timeout, std::chrono::milliseconds(1));
  check_duration("join-timeout", o.join_timeout, std::chrono::milliseconds(1));
}

Communicator Communicator::join(const CommOptions& options) {
  static std::atomic<bool> has_joined = false;
  if (current_world().size > 1 && has_joined.exchange(true)) {
    fail(ErrorKind::Config, "join: this process has already joined the other ranks",
         "keep the first communicator, and use duplicate() for a second one");
  }
  auto store = std::make_unique<Store>(Store::join(options.join_timeout));
  const World world = store->world();
  ChosenTransport chosen = make_transport(options, *store);
  Communicator comm(world, chosen.device, std::move(chosen.transport));
  comm.store_ = std::move(store);
  comm.why_ = std::move(chosen.why);
  return comm;
}

Communicator::Communicator(const World& world, torch::Device device, std::unique_ptr<Transport> transport)
    : world_(world),
      device_(device),
      transport_(std::move(transport)),
      busy_(std::make_unique<std::atomic<bool>>(false)) {}

Communicator communicator_over(const World& world, torch::Device device, std::unique_ptr<Transport> transport) {
  return {world, device, std::move(transport)};
}

Communicator::Communicator(Communicator&&) noexcept = default;

Communicator::~Communicator() {
  if (store_ && transport_->failed()) store_->abandon();
}

std::string Communicator::transport_name() const { return std::string(transport_->name()); }

Work Communicator::all_reduce(const Tensor& tensor, ReduceOp op, double divisor) {
  constexpr std::string_view kWhat = "all_reduce";
  check_output(kWhat, tensor);
  check_reduction(kWhat, tensor, op, divisor);
  const Turn turn(*this, kWhat, tensor.nbytes());
  const Tensor flat = transport_view(tensor);
  return deliver(transport_->all_reduce(flat, op, divisor), flat, tensor);
}

Work Communicator::all_gather(const Tensor& input, const Tensor& output) {
  constexpr std::string_view kWhat = "all_gather";
  check_type(kWhat, input);
  check_output(kWhat, output);
  check_parts(kWhat, input, output, world_.size);
  const Turn turn(*this, kWhat, input.nbytes());
  const Tensor flat = transport_view(output);
  return deliver(transport_->all_gather(transport_view(input), flat), flat, output);
}

Work Communicator::reduce_scatter(const Tensor& input, const Tensor& output, ReduceOp op) {
  constexpr std::string_view kWhat = "reduce_scatter";
  check_type(kWhat, input);
  check_output(kWhat, output);
  check_parts(kWhat, output, input, world_.size);
  check_reduction(kWhat, input, op, 1);
  const Turn turn(*this, kWhat, input.nbytes());
  const Tensor flat = transport_view(output);
  return deliver(transport_->reduce_scatter(transport_view(input), flat, op), flat, output);
}

Work Communicator::broadcast(const Tensor& tensor, int root) {
  constexpr std::string_view kWhat = "broadcast";
  check_output(kWhat, tensor);
  if (root < 0 || root >= world_.size) {
    fail(ErrorKind::Config, str(kWhat, ": root ", root, " of ", world_.size, " ranks"), "ranks are numbered from 0");
  }
  const Turn turn(*this, kWhat, tensor.nbytes());
  const Tensor flat = transport_view(tensor);
  return deliver(transport_->broadcast(flat, root), flat, tensor);
}

void Communicator::barrier() {
  const Turn turn(*this, "barrier", 0);
  transport_->barrier().wait();
}

std::vector<std::string> Communicator::all_gather_bytes(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const Tensor mine =
      torch::from_blob(const_cast<std::uint8_t*>(data), static_cast<std::int64_t>(bytes.size()), torch::kByte);
  std::vector<std::string> all;
  for (const Tensor& theirs : all_gather_uneven(mine)) {
    all.emplace_back(reinterpret_cast<const char*>(theirs.const_data_ptr<std::uint8_t>()), theirs.numel());
  }
  return all;
}

std::vector<Tensor> Communicator::all_gather_uneven(const Tensor& tensor) {
  check_type("all_gather_uneven", tensor);
  if (tensor.dim() == 0 || tensor.dim() > kMaxDimensions) {
    fail(ErrorKind::Config, str("all_gather_uneven: a tensor with ", tensor.dim(), " dimensions"),
         str("1 to ", kMaxDimensions, " dimensions are supported: tensor.view({-1})"));
  }
  // Shapes first, each as number of dimensions and sizes: a mismatch is reported before the tensors are gathered.
  std::vector<std::int64_t> mine(kMaxDimensions + 1);
  mine[0] = tensor.dim();
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), mine.begin() + 1);
  const auto place = torch::TensorOptions().device(transport_->device());
  const Tensor all_shapes = torch::zeros({world_.size, kMaxDimensions + 1}, place.dtype(torch::kLong));
  all_gather(torch::tensor(mine).to(place), all_shapes).wait();
  confirm();
  const Tensor shapes = all_shapes.cpu();
  for (int rank = 0; rank < world_.size; ++rank) check_same_but_first(tensor, shapes[rank], rank);
  const Tensor lengths = shapes.select(1, 1);
  const std::int64_t longest = lengths.max().item<std::int64_t>();

  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[0] = longest;
  const auto options = tensor.options().device(transport_->device());
  const Tensor padded = torch::zeros(shape, options);
  padded.narrow(0, 0, tensor.size(0)).copy_(tensor.detach());
  shape.insert(shape.begin(), world_.size);
  const Tensor gathered = torch::empty(shape, options);
  all_gather(padded, gathered).wait();
  confirm();

  std::vector<Tensor> all;
  for (int rank = 0; rank < world_.size; ++rank) {
    all.push_back(gathered[rank].narrow(0, 0, lengths[rank].item<std::int64_t>()).to(tensor.device()));
  }
  return all;
}

double Communicator::mean(double value) {
  const Tensor sum = torch::full({1}, value, torch::TensorOptions(torch::kDouble).device(transport_->device()));
  all_reduce(sum, ReduceOp::Sum, world_.size).wait();
  confirm();
  return sum.item<double>();
}

void Communicator::confirm() { transport_->confirm(); }

Tensor Communicator::empty(std::int64_t count, const torch::TensorOptions& options) {
  const auto limit = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(options.dtype().itemsize());
  if (count < 0 || count > limit) {
    fail(ErrorKind::Config, str("empty: a tensor of ", count, " elements"),
         "the number of elements must be non-negative and fit into memory");
  }
  return transport_->empty(count, options);
}

Communicator Communicator::duplicate() {
  const Turn turn(*this, "duplicate", 0);
  Communicator copy(world_, device_, transport_->duplicate());
  copy.why_ = why_;
  return copy;
}

void Communicator::set_step(std::int64_t step) { transport_->set_step(step); }

}  // namespace tandem
