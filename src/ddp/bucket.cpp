#include "ddp/bucket.h"

#include <torch/utils.h>

#include <optional>

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kAlignment = 64;  // bytes: a cache line, and the best alignment for vector loads

std::int64_t aligned(std::int64_t count, std::int64_t element_size) {
  const std::int64_t unit = kAlignment / element_size;
  return (count + unit - 1) / unit * unit;
}

// With the strides that autograd would give the gradient, so that copies and updates access memory sequentially.
// Detached, because autograd forbids in-place operations such as the detach_() of zero_grad() on views.
Tensor slice_for(const Tensor& parameter, const Tensor& flat, std::int64_t offset) {
  if (!parameter.is_non_overlapping_and_dense()) {
    return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()).detach();
  }
  return flat.as_strided(parameter.sizes(), parameter.strides(), flat.storage_offset() + offset).detach();
}

std::optional<torch::ScalarType> wire_type(WireType wire, const Tensor& flat) {
  if (wire == WireType::Full || flat.element_size() == 2) return std::nullopt;
  return wire == WireType::Bf16 ? torch::kBFloat16 : torch::kHalf;
}

}  // namespace

Bucket make_bucket(std::span<const Tensor> parameters, std::int64_t num_extra, WireType wire, Communicator& comm) {
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> offsets;
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters) {
    offsets.push_back(count);
    count += aligned(parameter.numel(), parameter.element_size());
  }

  Bucket bucket;
  bucket.flat = comm.empty(count + num_extra, parameters.front().options()).zero_();
  bucket.extra = bucket.flat.narrow(0, count, num_extra);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    bucket.slices.push_back(slice_for(parameters[i], bucket.flat, offsets[i]));
  }
  if (const auto type = wire_type(wire, bucket.flat)) {
    bucket.wire = comm.empty(bucket.flat.numel(), bucket.flat.options().dtype(*type));
  }
  return bucket;
}

std::int64_t Bucket::reduce(Communicator& comm, double divisor) {
  if (!wire.defined()) {
    work = comm.all_reduce(flat, ReduceOp::Sum, divisor);
    return static_cast<std::int64_t>(flat.nbytes());
  }
  // Divide before sending: the sum may overflow 16 bits.
  const double size = comm.world().size;
  torch::div_out(wire, flat, torch::scalar_tensor(size, flat.options()));
  work = comm.all_reduce(wire).then([flat = flat, wire = wire, factor = size / divisor] {
    flat.copy_(wire);
    if (factor != 1) flat.mul_(factor);
  });
  return static_cast<std::int64_t>(wire.nbytes());
}

}  // namespace tandem
