#include "kernels/fast_linear.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <algorithm>

#include "kernels/matvec.h"

namespace tandem {
namespace {

using torch::Tensor;

bool is_one_row(const Tensor& x, const Tensor& weight) {
  const at::ScalarType type = weight.scalar_type();
  const bool has_kernel = weight.is_cpu() && (type == torch::kFloat || type == torch::kBFloat16) &&
                          weight.size(1) % kMatVecColumns == 0 && weight.is_contiguous();
  return has_kernel && x.is_cpu() && x.scalar_type() == type && x.numel() == weight.size(1) &&
         !torch::GradMode::is_enabled() && !at::autocast::is_autocast_enabled(at::kCPU);
}

// As MatVec wants it.
Tensor input_of(const Tensor& x) {
  if (x.scalar_type() == torch::kFloat) return x.contiguous();
  return x.reshape({-1, 2}).t().to(torch::kFloat, /*non_blocking=*/false, /*copy=*/false, at::MemoryFormat::Contiguous);
}

Tensor multiply_row(const Tensor& x, const Tensor& weight) {
  const Tensor input = input_of(x);
  Tensor output = torch::empty(weight.size(0), torch::kFloat);
  const auto multiply = matvec_variants().front().multiply;
  const auto columns = static_cast<std::size_t>(weight.size(1));
  const auto* first = static_cast<const char*>(weight.const_data_ptr());
  // So many rows that each thread has a hundred thousand numbers or more.
  const std::int64_t grain = std::max<std::int64_t>(1, 100'000 / weight.size(1));
  at::parallel_for(0, weight.size(0), grain, [&](std::int64_t begin, std::int64_t end) {
    multiply({weight.scalar_type() == torch::kFloat ? WeightType::Float : WeightType::BFloat16,
              first + begin * weight.size(1) * weight.element_size(), input.const_data_ptr<float>(),
              output.data_ptr<float>() + begin, static_cast<std::size_t>(end - begin), columns});
  });
  return output;
}

}  // namespace

Tensor fast_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!is_one_row(x, weight)) return at::linear(x, weight, bias);
  Tensor output = multiply_row(x, weight);
  if (bias.defined()) output.add_(bias);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return output.to(x.scalar_type()).view(shape);
}

}  // namespace tandem
