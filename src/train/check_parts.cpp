#include "train/check_parts.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <bit>
#include <set>

#include "base/text.h"
#include "monitor/numbers.h"

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
           " parameters that the model trains, and ",
           counted(static_cast<std::int64_t>(num_strange), "other parameter")),
       "create the optimizer from the module of the DistributedDataParallel; freeze parameters that it should not "
       "update before that: parameter.requires_grad_(false)");
}

void check_wire(const Reducer& reducer) {
  if (reducer.options().wire != WireType::Fp16) return;
  fail(ErrorKind::Config,
       "training: --wire fp16 cannot be used: gradients are reduced as sums over samples, which overflow fp16",
       "use --wire bf16 or full");
}

void check_exact(const Reducer& reducer, std::int64_t num_shards) {
  const Communicator& comm = reducer.comm();
  if (comm.world().size > 1 && !std::has_single_bit(static_cast<std::uint64_t>(num_shards))) {
    fail(ErrorKind::Config, str("training: ", num_shards, " shards on each of ", comm.world().size, " ranks"),
         "exact mode needs a power of two on each rank: see plan_batch for valid numbers");
  }
  if (comm.transport_name() == "nccl" && comm.world().size > 2) {
    fail(ErrorKind::Config,
         "training: exact mode is not available with nccl on more than 2 ranks, whose order of summation differs",
         "leave out --shards, or use --transport shm");
  }
  if (reducer.options().wire != WireType::Full || reducer.options().buffers != BufferSync::Broadcast) {
    fail(ErrorKind::Config, "training: exact mode is not available with this --wire or --buffers",
         "leave out --shards, or use --wire full --buffers broadcast");
  }
}

}  // namespace

void check_parts(const Reducer& reducer, const Optimizer& optimizer, std::int64_t num_batches, bool is_exact) {
  check_optimizer(reducer, optimizer);
  check_wire(reducer);
  if (is_exact) check_exact(reducer, num_batches);
}

}  // namespace tandem
