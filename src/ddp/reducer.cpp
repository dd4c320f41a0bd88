#include "ddp/reducer.h"

#include <tandem/error.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"
#include "ddp/bucket_plan.h"
#include "ddp/buffer_sync.h"

namespace tandem {

using torch::Tensor;

Reducer::Reducer(const std::vector<NamedTensor>& parameters, std::vector<Tensor> buffers, Communicator& comm,
                 const DdpOptions& options)
    : comm_(comm), options_(options), divisor_(comm.world().size), buffers_(std::move(buffers)) {
  for (const auto& [name, parameter] : parameters) {
    if (parameter.requires_grad()) {
      slots_.push_back({.name = name, .parameter = parameter, .slice = {}});
    } else {
      frozen_.emplace_back(name, parameter);
    }
  }
  if (slots_.empty()) {
    fail(ErrorKind::Comm, "DistributedDataParallel: no parameter of the module needs a gradient",
         "register its parameters and leave requires_grad on, or use the module without DistributedDataParallel");
  }

  std::vector<std::size_t> order(slots_.size());
  std::iota(order.rbegin(), order.rend(), 0);  // a backward pass begins with what was defined last
  make_buckets(order);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    hooks_.emplace_back(slots_[i].parameter, [this, i] { on_gradient(i); });
  }
}

std::vector<Tensor> Reducer::trained_parameters() const {
  std::vector<Tensor> parameters;
  for (const Slot& slot : slots_) parameters.push_back(slot.parameter);
  return parameters;
}

void Reducer::make_buckets(std::span<const std::size_t> order) {
  std::vector<GradientSize> sizes;
  for (const Slot& slot : slots_) sizes.push_back({slot.parameter.nbytes(), slot.parameter.scalar_type()});
  const BucketPlan plan = plan_buckets(sizes, order, options_.first_bucket, options_.bucket);

  buckets_.clear();
  for (const std::vector<std::size_t>& members : plan) {
    std::vector<Tensor> parameters;
    for (const std::size_t i : members) parameters.push_back(slots_[i].parameter);
    const bool is_last = buckets_.size() + 1 == plan.size();
    const auto num_extra = is_last ? static_cast<std::int64_t>(slots_.size()) : 0;
    Bucket& bucket = buckets_.emplace_back(make_bucket(parameters, num_extra, options_.wire, comm_));
    for (std::size_t k = 0; k < members.size(); ++k) {
      slots_[members[k]].slice = bucket.slices[k];
      slots_[members[k]].bucket = buckets_.size() - 1;
    }
  }
  usage_ = buckets_.back().extra;
}

void Reducer::check_last_pass() const {
  if (!pass_) return;
  fail(ErrorKind::Comm, "DistributedDataParallel: the last backward pass did not come to its end",
       "an exception ended it, so the ranks no longer do the same: end the run and resume from a checkpoint");
}

void Reducer::begin_forward() {
  check_last_pass();
  check_parameters();
  if (!torch::GradMode::is_enabled() || no_sync_depth_ > 0 || is_frozen()) return;
  ++num_forwards_;
  is_awaited_ = true;
}

bool Reducer::is_frozen() const {
  return std::ranges::none_of(slots_, [](const Slot& slot) { return slot.parameter.requires_grad(); });
}

// What was changed since the buckets were made would silently stay out of them.
void Reducer::check_parameters() const {
  for (const auto& [name, parameter] : frozen_) {
    if (!parameter.requires_grad()) continue;
    fail(ErrorKind::Comm, str("DistributedDataParallel: parameter ", name, " was frozen and now needs a gradient"),
         "make a new DistributedDataParallel after changing requires_grad");
  }
  for (const Slot& slot : slots_) {
    const Tensor& now = slot.parameter;
    const Tensor& then = slot.slice;
    if (now.sizes() == then.sizes() && now.dtype() == then.dtype() && now.device() == then.device()) continue;
    fail(ErrorKind::Comm,
         str("DistributedDataParallel: parameter ", slot.name, " has changed its type, device or shape"),
         "convert and move the module first, then make the DistributedDataParallel");
  }
}

void Reducer::on_gradient(std::size_t index) {
  slots_[index].has_news = true;
  is_awaited_ = false;
  if (no_sync_depth_ > 0) return;

  check_backward();
  if (!pass_) {
    begin_pass();
    torch::autograd::Engine::get_default_engine().queue_callback([this] { complete_pass(); });
  }
  move_into_bucket(index);
  launch_full_buckets();
}

void Reducer::check_backward() const {
  if (torch::GradMode::is_enabled()) {
    fail(ErrorKind::Comm, "DistributedDataParallel: backward() was called with create_graph",
         "gradients of gradients do not pass between ranks; take the inner gradient by torch::autograd::grad with "
         "create_graph, and call backward() without it");
  }
  if (pass_ && *pass_ != torch::autograd::get_current_graph_task_id()) {
    fail(ErrorKind::Comm, "DistributedDataParallel: a gradient came from a backward pass inside the backward pass",
         "recompute activations by tandem::recompute, which adds to no gradient inside");
  }
  if (!pass_ && num_forwards_ == 0) {
    fail(ErrorKind::Comm, "DistributedDataParallel: a backward pass without a forward() of its own",
         "for each backward() call forward() of the DistributedDataParallel, not of the bare module, and both inside "
         "no_sync() or both outside; a block that calls backward() inside the backward pass needs tandem::recompute");
  }
}

void Reducer::begin_pass() {
  pass_ = torch::autograd::get_current_graph_task_id();
  --num_forwards_;
  comm_.set_step(step_++);  // a rank that is a pass behind shows by it
  if (stats_.passes == 1) make_buckets(ready_order_);
  num_missing_.assign(buckets_.size(), 0);
  for (Slot& slot : slots_) {
    slot.is_ready = false;
    ++num_missing_[slot.bucket];
  }
  next_bucket_ = 0;
  usage_.fill_(1);
}

// From here on the gradient lives in its bucket. One that has stayed there since the last pass need not move.
void Reducer::move_into_bucket(std::size_t index) {
  Slot& slot = slots_[index];
  Tensor& grad = slot.parameter.mutable_grad();
  if (grad.layout() != torch::kStrided) {
    fail(ErrorKind::Comm, str("DistributedDataParallel: the gradient of ", slot.name, " is sparse"),
         "make that layer with sparse(false)");
  }
  if (!grad.is_set_to(slot.slice)) {
    slot.slice.copy_(grad);
    grad = slot.slice;
  }
  mark_ready(index);
}

void Reducer::mark_ready(std::size_t index) {
  slots_[index].is_ready = true;
  --num_missing_[slots_[index].bucket];
  if (stats_.passes == 0) ready_order_.push_back(index);
}

// In index order, even where they fill up in another one: every rank must start the same collectives in the same order.
void Reducer::launch_full_buckets() {
  while (next_bucket_ < buckets_.size() && num_missing_[next_bucket_] == 0) {
    stats_.bytes += buckets_[next_bucket_++].reduce(comm_, divisor_);
    ++stats_.buckets;
  }
}

void Reducer::complete_pass() {
  const torch::NoGradGuard no_grad;
  const std::vector<std::size_t> unused = fill_unused();
  launch_full_buckets();
  wait_for_peers();
  take_from_peers(unused);
  sync_buffers(buffers_, options_.buffers, comm_);
  if (stats_.passes == 0) agree_on_order();

  for (Slot& slot : slots_) slot.has_news = false;
  ++stats_.passes;
  pass_.reset();
}

// For parameters that got no gradient in this pass. What passes under no_sync() left in `.grad` is due now. The others
// are returned: peers get what `.grad` holds, or zeros, but `.grad` itself must not lie in the memory that is reduced.
std::vector<std::size_t> Reducer::fill_unused() {
  std::vector<std::size_t> unused;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.is_ready) continue;
    Tensor& grad = slot.parameter.mutable_grad();
    if (slot.has_news && grad.defined()) {
      move_into_bucket(i);
      continue;
    }
    if (grad.defined()) {
      slot.slice.copy_(grad);
      if (grad.is_set_to(slot.slice)) grad = grad.clone();
    } else {
      slot.slice.zero_();
    }
    usage_[static_cast<std::int64_t>(i)] = 0;
    mark_ready(i);
    unused.push_back(i);
  }
  return unused;
}

void Reducer::wait_for_peers() {
  const Stopwatch watch;
  for (Bucket& bucket : buckets_) bucket.work.wait();
  comm_.confirm();  // when backward() returns, gradients are right or it has thrown
  stats_.exposed += watch.elapsed();
}

// A parameter without a gradient here may have one elsewhere. If it has none on any rank, `.grad` stays as it was.
void Reducer::take_from_peers(std::span<const std::size_t> unused) {
  if (unused.empty()) return;  // reading the usage would make the host wait for the device
  const Tensor usage = usage_.cpu();
  std::vector<std::string> names;
  for (const std::size_t i : unused) {
    if (!usage[static_cast<std::int64_t>(i)].is_nonzero()) continue;
    slots_[i].parameter.mutable_grad() = slots_[i].slice;
    names.push_back(slots_[i].name);
  }
  if (!names.empty()) warn_of_unused(join(names, ", "));
}

void Reducer::warn_of_unused(const std::string& names) {
  if (!warned_.insert(names).second) return;
  c10::warn(c10::Warning(
      c10::UserWarning(), {__func__, __FILE__, __LINE__},
      str("DistributedDataParallel: on rank ", comm_.world().rank,
          " the loss does not depend on these parameters, on other ranks it does; here they count as zero: ", names),
      true));
}

// Gradients will become ready in about the order in which they did now. Rank 0's order counts, since all ranks need the
// same buckets. They are made when the next pass begins: by then zero_grad() may have let go of the old ones.
void Reducer::agree_on_order() {
  const std::vector<std::int64_t> mine(ready_order_.begin(), ready_order_.end());
  const auto options = torch::TensorOptions(torch::kLong).device(usage_.device());
  const Tensor order = comm_.empty(static_cast<std::int64_t>(mine.size()), options);
  order.copy_(torch::tensor(mine));
  comm_.broadcast(order).wait();
  comm_.confirm();
  const Tensor agreed = order.cpu();
  const auto* indices = agreed.const_data_ptr<std::int64_t>();
  ready_order_.assign(indices, indices + agreed.numel());
}

void Reducer::finish() {
  check_last_pass();
  num_forwards_ = 0;
  if (is_awaited_) reduce();
}

void Reducer::reduce() {
  check_last_pass();
  num_forwards_ = 1;
  is_awaited_ = false;
  begin_pass();
  complete_pass();
}

}  // namespace tandem
