#include <tandem/error.h>
#include <tandem/optimizer.h>
#include <torch/utils.h>

#include <cstdint>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::int64_t kBlock = 16384;  // torch splits sums of 32768 and more elements among threads

Tensor in_memory_order(const Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) return tensor.reshape(-1);
  return tensor.as_strided({tensor.numel()}, {1});
}

// The norm of block norms: the order of summation does not depend on the number of threads, and a plain float32 sum of
// millions of squares would be wrong in the third digit.
Tensor block_norms(const Tensor& values) {
  const std::int64_t whole = values.numel() / kBlock * kBlock;
  Tensor rest = at::linalg_vector_norm(values.narrow(0, whole, values.numel() - whole)).view(1);
  if (whole == 0) return rest;
  return torch::cat({at::linalg_vector_norm(values.narrow(0, 0, whole).view({-1, kBlock}), 2, 1), rest});
}

Tensor norm_on_cpu(std::span<const Tensor> gradients) {
  std::vector<Tensor> norms;
  for (const Tensor& gradient : gradients) norms.push_back(block_norms(in_memory_order(gradient)));
  Tensor all = torch::cat(norms);
  while (all.numel() > kBlock) all = block_norms(all);
  return at::linalg_vector_norm(all);
}

}  // namespace

Tensor global_norm(std::span<const Tensor> gradients) {
  const torch::NoGradGuard no_grad;
  if (gradients.empty()) return torch::zeros({});
  if (gradients.front().is_cpu()) return norm_on_cpu(gradients);
  return at::linalg_vector_norm(torch::stack(at::_foreach_norm({gradients.data(), gradients.size()})));
}

Tensor clip_coefficient(const Tensor& norm, double max_norm) {
  if (!(max_norm >= 0))
    fail(ErrorKind::Config, str("clip: the maximum gradient norm is ", max_norm, "; it must be at least 0"),
         "0 turns clipping off");
  if (max_norm == 0) return at::ones_like(norm, torch::kFloat);
  return (max_norm / (norm + 1e-6)).clamp_max(1).to(torch::kFloat);
}

Tensor found_inf(const Tensor& norm) { return norm.isfinite().logical_not().to(torch::kFloat); }

}  // namespace tandem
