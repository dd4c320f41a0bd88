#include <tandem/autocast.h>
#include <tandem/clip.h>
#include <tandem/error.h>
#include <tandem/random_key.h>
#include <tandem/train_step.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "ddp/reducer.h"
#include "train/shard_sum.h"
#include "train/step_loss.h"

namespace tandem::detail {
namespace {

using torch::Tensor;

// While it lives, gradients become the sum over the ranks.
class SumGuard {
 public:
  explicit SumGuard(Reducer& reducer) : reducer_(reducer) { reducer_.set_divisor(1); }
  ~SumGuard() { reducer_.set_divisor(reducer_.comm().world().size); }
  SumGuard(const SumGuard&) = delete;
  SumGuard& operator=(const SumGuard&) = delete;

 private:
  Reducer& reducer_;
};

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
       str("train_step: the optimizer has ", num_known, " of the ", trained.size(),
           " parameters that the model trains, and ", num_strange, " others"),
       "make the optimizer from the module of the DistributedDataParallel; freeze what it should leave alone "
       "before: parameter.requires_grad_(false)");
}

void check_wire(const Reducer& reducer) {
  if (reducer.options().wire != WireType::Fp16) return;
  fail(ErrorKind::Config, "train_step: gradients travel as sums over all samples, for which fp16 has too small a range",
       "--wire bf16 or full");
}

void check_exact(const Reducer& reducer, std::size_t num_shards) {
  const Communicator& comm = reducer.comm();
  if (comm.world().size > 1 && !std::has_single_bit(num_shards)) {
    fail(ErrorKind::Config, str("train_step: ", num_shards, " shards on each of ", comm.world().size, " ranks"),
         "exact mode needs a power of two of them on each rank: plan_batch says which numbers fit");
  }
  if (comm.transport_name() == "nccl" && comm.world().size > 2) {
    fail(ErrorKind::Config, "train_step: nccl sums in an order of its own, so bits depend on the number of ranks",
         "leave --shards out, or give --transport shm");
  }
  if (reducer.options().wire != WireType::Full || reducer.options().buffers != BufferSync::Broadcast) {
    fail(ErrorKind::Config, "train_step: with this --wire or --buffers, bits depend on the number of ranks",
         "leave --shards out, or give --wire full --buffers broadcast");
  }
}

// The backward pass comes later, outside of the autocast.
LossSum compute(const MicroBatch& micro_batch, torch::Device device, Precision precision) {
  const Autocast autocast(device.type(), precision);
  return micro_batch.loss();
}

// All micro-batches but the last stay on this rank.
void accumulate(Reducer& reducer, std::size_t num_batches, const std::function<void(std::size_t)>& pass) {
  for (std::size_t i = 0; i < num_batches; ++i) {
    std::optional<NoSync> no_sync;
    if (i + 1 < num_batches) no_sync = reducer.no_sync();
    pass(i);
  }
  if (num_batches == 0) return reducer.reduce();  // the others need to hear that nothing comes from here
  reducer.finish();
}

void add_shards(Reducer& reducer, std::size_t num_shards, const std::function<void(std::size_t)>& pass) {
  ShardSum sum(reducer);
  for (std::size_t i = 0; i < num_shards; ++i) {
    sum.add([&] { pass(i); });
  }
  sum.reduce();
}

// Before the first backward pass of a scaled loss; every rank comes here. Rank 0 decides, by its first micro-batch,
// which is the same on any number of ranks.
void agree_on_normalizer(LossScaler& scaler, std::int64_t count, std::size_t num_batches, Communicator& comm) {
  const std::int64_t estimate = count * static_cast<std::int64_t>(num_batches) * comm.world().size;
  const Tensor agreed = torch::full({}, estimate, torch::device(comm.device()).dtype(torch::kLong));
  comm.broadcast(agreed).wait();
  comm.confirm();
  scaler.normalize_by(std::max<std::int64_t>(agreed.item<std::int64_t>(), 1));
}

// A scale that was halved so often does not explain the overflow any more.
void check_scale(const LossScaler& scaler, std::int64_t step) {
  constexpr double kFloor = 1.0 / 1024;
  if (scaler.scale() >= kFloor) return;
  fail(ErrorKind::Data, str("train_step: the gradient of step ", step, " is not finite, whatever the loss scale"),
       "lower the learning rate, or use --precision bf16 or fp32; --resume goes on from the last checkpoint");
}

// Updates by the gradients of the mean over `count` samples, of which `.grad` holds the scaled sum.
StepResult update(Optimizer& optimizer, LossScaler& scaler, double count, const StepOptions& options) {
  const std::vector<Tensor> gradients = optimizer.gradients();
  if (gradients.empty()) {
    fail(ErrorKind::Data, str("train_step: the loss of step ", options.step, " depends on no parameter, on any rank"),
         "compute it from what the DistributedDataParallel returns, without detach() or NoGradGuard");
  }
  const Tensor sum_norm = global_norm(gradients);
  const Tensor divisor = scaler.divisor(torch::full_like(sum_norm, count));
  const Tensor norm = sum_norm / divisor;
  const Tensor overflow = found_inf(norm);
  const bool must_clip = options.max_norm > 0;
  optimizer.update(options.lr, must_clip ? divisor / clip_coefficient(norm, options.max_norm) : divisor, overflow);
  scaler.update(overflow);

  StepResult result{.count = static_cast<std::int64_t>(count), .norm = norm.item<double>()};
  result.was_skipped = !std::isfinite(result.norm);
  if (result.was_skipped && !scaler.is_on()) {
    fail(ErrorKind::Data, str("train_step: the gradient of step ", options.step, " is not finite, though its loss is"),
         "lower the learning rate, or clip gradients; --resume goes on from the last checkpoint");
  }
  if (result.was_skipped) check_scale(scaler, options.step);
  return result;
}

}  // namespace

StepResult train_step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler,
                      std::span<const MicroBatch> micro_batches, const StepOptions& options) {
  check_optimizer(reducer, optimizer);
  check_wire(reducer);
  if (options.is_exact) check_exact(reducer, micro_batches.size());
  Communicator& comm = reducer.comm();
  const SumGuard sums(reducer);
  reducer.set_step(options.step);
  optimizer.zero_grad();

  StepLoss losses(options, micro_batches, comm);
  const std::size_t num_batches = micro_batches.size();
  const auto first = static_cast<std::int64_t>(num_batches) * comm.world().rank;  // among those of all ranks
  const auto pass = [&](std::size_t i) {
    const std::int64_t number = micro_batches[i].number.value_or(first + static_cast<std::int64_t>(i));
    torch::manual_seed(random_key(options.seed, Draw::MicroBatch, options.step, number));
    const LossSum loss = compute(micro_batches[i], comm.device(), scaler.precision());
    losses.add(loss);
    if (scaler.needs_normalizer()) agree_on_normalizer(scaler, loss.count, num_batches, comm);
    if (loss.sum.requires_grad()) scaler.scaled(loss.sum).backward();
  };
  if (num_batches == 0 && scaler.needs_normalizer()) agree_on_normalizer(scaler, 0, 0, comm);
  const bool has_shards = options.is_exact && num_batches > 1;
  (has_shards ? add_shards : accumulate)(reducer, num_batches, pass);

  const Tally total = losses.total();
  StepResult result = update(optimizer, scaler, total.count, options);
  result.loss = total.sum / total.count;
  return result;
}

}  // namespace tandem::detail
