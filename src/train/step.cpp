#include "train/step.h"

#include <tandem/clip.h>
#include <tandem/error.h>
#include <tandem/random_key.h>
#include <torch/utils.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

void check_optimizer(const Reducer& reducer, const Optimizer& optimizer) {
  std::set<const void*> trained;
  for (const Tensor& parameter : reducer.trained_parameters()) trained.insert(parameter.unsafeGetTensorImpl());
  std::size_t num_known = 0;
  std::size_t num_strange = 0;
  for (const ParameterGroup& group : optimizer.groups()) {
    for (const auto& [name, parameter] : group.parameters) {
      ++(trained.contains(parameter.unsafeGetTensorImpl()) ? num_known : num_strange);
    }
  }
  if (num_strange == 0 && num_known == trained.size()) return;
  fail(ErrorKind::Config,
       str("training: the optimizer has ", num_known, " of the ", trained.size(),
           " parameters that the model trains, and ", num_strange, " others"),
       "make the optimizer from the module of the DistributedDataParallel; freeze what it should leave alone "
       "before: parameter.requires_grad_(false)");
}

void check_wire(const Reducer& reducer) {
  if (reducer.options().wire != WireType::Fp16) return;
  fail(ErrorKind::Config, "training: gradients travel as sums over all samples, for which fp16 has too small a range",
       "--wire bf16 or full");
}

void check_exact(const Reducer& reducer, std::int64_t num_shards) {
  const Communicator& comm = reducer.comm();
  if (comm.world().size > 1 && !std::has_single_bit(static_cast<std::uint64_t>(num_shards))) {
    fail(ErrorKind::Config, str("training: ", num_shards, " shards on each of ", comm.world().size, " ranks"),
         "exact mode needs a power of two of them on each rank: plan_batch says which numbers fit");
  }
  if (comm.transport_name() == "nccl" && comm.world().size > 2) {
    fail(ErrorKind::Config, "training: nccl sums in an order of its own, so bits depend on the number of ranks",
         "leave --shards out, or give --transport shm");
  }
  if (reducer.options().wire != WireType::Full || reducer.options().buffers != BufferSync::Broadcast) {
    fail(ErrorKind::Config, "training: with this --wire or --buffers, bits depend on the number of ranks",
         "leave --shards out, or give --wire full --buffers broadcast");
  }
}

void check_loss(const LossSum& loss) {
  if (loss.sum.defined() && loss.sum.numel() == 1 && loss.count >= 0) return;
  fail(ErrorKind::Config,
       str("training: the loss of a micro-batch is ",
           loss.sum.defined() ? str(loss.sum.numel(), " numbers") : "nothing", " for a count of ", loss.count),
       "give one number, the sum of the losses, and how many they are");
}

}  // namespace

void check_parts(const Reducer& reducer, const Optimizer& optimizer, std::int64_t num_batches, bool is_exact) {
  check_optimizer(reducer, optimizer);
  check_wire(reducer);
  if (is_exact) check_exact(reducer, num_batches);
}

Step::Step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler, std::int64_t num_batches,
           const StepOptions& options)
    : reducer_(reducer),
      optimizer_(optimizer),
      scaler_(scaler),
      options_(options),
      num_batches_(num_batches),
      losses_(options, reducer.comm()),
      sums_(reducer) {
  check_parts(reducer, optimizer, num_batches, options.is_exact);
  reducer.set_step(options.step);
  optimizer.zero_grad();
  if (options.is_exact && num_batches > 1) shards_.emplace(reducer);
}

// All micro-batches but the last stay on this rank; in exact mode the last one does too, until all are added up.
void Step::begin_batch(const BatchName& name) {
  ids_ = name.ids;
  if (shards_) {
    shards_->begin_shard();
  } else if (num_done_ + 1 < num_batches_) {
    no_sync_.emplace(reducer_.no_sync());
  }
  const Communicator& comm = reducer_.comm();
  const std::int64_t number = name.number.value_or(num_batches_ * comm.world().rank + num_done_);
  torch::manual_seed(random_key(options_.seed, Draw::MicroBatch, options_.step, number));
  autocast_.emplace(comm.device().type(), scaler_.precision());
}

void Step::backward(const LossSum& loss) {
  autocast_.reset();
  check_loss(loss);
  losses_.add(loss, ids_);
  if (scaler_.needs_normalizer()) agree_on_normalizer(loss.count);
  if (loss.count > 0 && loss.sum.requires_grad()) scaler_.scaled(loss.sum).backward();
  if (shards_) shards_->end_shard();
  no_sync_.reset();
  ++num_done_;
}

StepResult Step::update(double lr, double max_norm) {
  if (!std::isfinite(lr)) {
    fail(ErrorKind::Config, str("training: the learning rate of step ", options_.step + 1, " is ", lr),
         "give a number: this one would spoil every weight");
  }
  if (num_batches_ == 0 && scaler_.needs_normalizer()) agree_on_normalizer(0);
  if (shards_) {
    shards_->reduce();
  } else if (num_batches_ == 0) {
    reducer_.reduce();  // the others need to hear that nothing comes from here
  } else {
    reducer_.finish();
  }
  const Tally total = losses_.total();
  StepResult result = update_by_mean_of(total.count, lr, max_norm);
  result.loss = total.sum / total.count;
  result.work = static_cast<std::int64_t>(total.work);
  check_result(result);
  return result;
}

// Before the first backward pass of a scaled loss; every rank comes here. Rank 0 decides, by its first micro-batch,
// which is the same on any number of ranks.
void Step::agree_on_normalizer(std::int64_t count) {
  Communicator& comm = reducer_.comm();
  const std::int64_t estimate = count * num_batches_ * comm.world().size;
  const Tensor agreed = torch::full({}, estimate, torch::device(comm.device()).dtype(torch::kLong));
  comm.broadcast(agreed).wait();
  comm.confirm();
  scaler_.normalize_by(std::max<std::int64_t>(agreed.item<std::int64_t>(), 1));
}

// `.grad` holds the scaled sum over `count` samples.
StepResult Step::update_by_mean_of(double count, double lr, double max_norm) {
  const std::vector<Tensor> gradients = optimizer_.gradients();
  if (gradients.empty()) {
    fail(ErrorKind::Data,
         str("training: the loss of step ", options_.step + 1, " depends on no parameter, on any rank"),
         "compute it from what the DistributedDataParallel returns, without detach() or NoGradGuard");
  }
  const Tensor sum_norm = global_norm(gradients);
  const Tensor divisor = scaler_.divisor(torch::full_like(sum_norm, count));
  const Tensor norm = sum_norm / divisor;
  const Tensor overflow = found_inf(norm);
  optimizer_.update(lr, max_norm > 0 ? divisor / clip_coefficient(norm, max_norm) : divisor, overflow);
  scaler_.update(overflow);
  const double norm_value = norm.item<double>();
  return {.count = static_cast<std::int64_t>(count), .norm = norm_value, .was_skipped = !std::isfinite(norm_value)};
}

void Step::check_result(const StepResult& result) const {
  if (!result.was_skipped) return;
  if (!scaler_.is_on()) {
    fail(ErrorKind::Data,
         str("training: the gradient of step ", options_.step + 1, " is not finite, though its loss is"),
         "lower the learning rate, or clip gradients; what --save-every has saved before is good");
  }
  constexpr double kFloor = 1.0 / 1024;  // a scale that was halved so often does not explain the overflow any more
  if (scaler_.scale() < kFloor) {
    fail(ErrorKind::Data,
         str("training: the gradient of step ", options_.step + 1, " is not finite, whatever the loss scale"),
         "lower the learning rate, or use --precision bf16 or fp32; what --save-every has saved before is good");
  }
}

StepResult detail::train_step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler,
                              std::span<const MicroBatch> micro_batches, const StepOptions& options) {
  Step step(reducer, optimizer, scaler, std::ssize(micro_batches), options);
  for (const MicroBatch& micro_batch : micro_batches) {
    step.begin_batch(micro_batch.name);
    step.backward(micro_batch.loss());
  }
  return step.update(options.lr, options.max_norm);
}

}  // namespace tandem
