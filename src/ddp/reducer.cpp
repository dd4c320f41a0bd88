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
    fail(ErrorKind::Config, "DistributedDataParallel: no parameter of the module requires grad",
         "register its parameters with requires_grad, or use the module without DistributedDataParallel");
  }

  std::vector<std::size_t> order(slots_.size());
  std::iota(order.rbegin(), order.rend(), 0);  // backward usually visits the layers in reverse order
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
  fail(ErrorKind::Comm, "DistributedDataParallel: the last backward pass did not complete",
       "an exception interrupted it, and the ranks are out of step: stop the run and resume from a checkpoint");
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

// Later changes of the parameters would silently bypass the buckets.
void Reducer::check_parameters() const {
  for (const auto& [name, parameter] : frozen_) {
    if (!parameter.requires_grad()) continue;
    fail(ErrorKind::Config, str("DistributedDataParallel: parameter ", name, " was frozen and now requires grad"),
         "set requires_grad before creating the DistributedDataParallel; under an Accelerator prepare the model with "
         "it, and use freeze(module) and unfreeze(module) from then on");
  }
  for (const Slot& slot : slots_) {
    const Tensor& now = slot.parameter;
    const Tensor& then = slot.slice;
    if (now.sizes() == then.sizes() && now.dtype() == then.dtype() && now.device() == then.device()) continue;
    fail(ErrorKind::Config,
         str("DistributedDataParallel: parameter ", slot.name, " has changed its dtype, device or shape"),
         "convert and move the module before creating the DistributedDataParallel");
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
    fail(ErrorKind::Config, "DistributedDataParallel: backward() was called with create_graph",
         "double backward is not reduced over the ranks; compute the inner gradient with torch::autograd::grad and "
         "create_graph, and call backward() without it");
  }
  if (pass_ && *pass_ != torch::autograd::get_current_graph_task_id()) {
    fail(ErrorKind::Config, "DistributedDataParallel: a backward pass was started inside the backward pass",
         "use tandem::recompute for activation checkpointing");
  }
  if (!pass_ && num_forwards_ == 0) {
    fail(ErrorKind::Config, "DistributedDataParallel: backward() without a matching forward()",
         "call forward() of the DistributedDataParallel, not of the bare module, once per backward(), and both inside "
         "no_sync() or both outside; for activation checkpointing use tandem::recompute");
  }
}

void Reducer::begin_pass() {
  pass_ = torch::autograd::get_current_graph_task_id();
  --num_forwards_;
  comm_.set_step(step_++);  // lets the transport detect a rank that is a pass behind
  if (stats_.passes == 1) make_buckets(ready_order_);
  num_missing_.assign(buckets_.size(), 0);
  for (Slot& slot : slots_) {
    slot.is_ready = false;
    ++num_missing_[slot.bucket];
  }
  next_bucket_ = 0;
  usage_.fill_(1);
}

// Makes `.grad` a view into its bucket; no copy if it still is one from the last pass.
void Reducer::move_into_bucket(std::size_t index) {
  Slot& slot = slots_[index];
  Tensor& grad = slot.parameter.mutable_grad();
  if (grad.layout() != torch::kStrided) {
    fail(ErrorKind::Config, str("DistributedDataParallel: the gradient of ", slot.name, " is sparse"),
         "create that layer with sparse(false)");
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

// In index order, even if they fill up in another order: every rank must start the same collectives in the same order.
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

// For parameters without a gradient in this pass. Gradients accumulated under no_sync() are reduced now. The others are
// returned: they contribute the present `.grad` or zeros, but `.grad` itself must not be in the memory that is reduced.
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
  comm_.confirm();  // backward() returns correct gradients or throws
  stats_.exposed += watch.elapsed();
}

// A parameter unused on this rank may be used on others. If no rank uses it, its `.grad` stays unchanged. A rank that
// uses none has no loss in this pass, such as one with padding only: that needs no warning.
void Reducer::take_from_peers(std::span<const std::size_t> unused) {
  if (unused.empty()) return;  // reading the usage would synchronize host and device
  const Tensor usage = usage_.cpu();
  std::vector<std::string> names;
  for (const std::size_t i : unused) {
    if (!usage[static_cast<std::int64_t>(i)].is_nonzero()) continue;
    slots_[i].parameter.mutable_grad() = slots_[i].slice;
    names.push_back(slots_[i].name);
  }
  if (!names.empty() && unused.size() < slots_.size()) warn_of_unused(join_some(names, ", "));
}

void Reducer::warn_of_unused(const std::string& names) {
  if (!warned_.insert(names).second) return;
  c10::warn(c10::Warning(
      c10::UserWarning(), {__func__, __FILE__, __LINE__},
      str("DistributedDataParallel: rank ", comm_.world().rank,
          " did not use these parameters in the loss, but other ranks did; their gradient counts as zero here: ",
          names),
      true));
}

// Buckets are rebuilt in the order in which gradients became ready in the first pass on rank 0: all ranks need the same
// buckets. They are rebuilt when the next pass begins, when zero_grad() may have released the old ones.
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

void Reducer::reduce_present() {
  for (Slot& slot : slots_) slot.has_news = slot.parameter.grad().defined();
  reduce();
}

}  // namespace tandem
