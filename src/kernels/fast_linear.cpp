#include "kernels/fast_linear.h"

#include <ATen/autocast_mode.h>
#include <torch/types.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/matvec.h"
#include "kernels/parallel_for.h"

namespace tandem {
namespace {

using torch::Tensor;

bool is_one_row(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const at::ScalarType type = weight.scalar_type();
  const bool has_kernel = weight.is_cpu() && (type == torch::kFloat || type == torch::kBFloat16) &&
                          weight.size(1) % kMatVecColumns == 0 && weight.numel() > 0 && weight.is_contiguous();
  const bool fits_bias =
      !bias.defined() || (bias.scalar_type() == type && bias.numel() == weight.size(0) && bias.is_contiguous());
  return has_kernel && fits_bias && x.is_cpu() && x.scalar_type() == type && x.numel() == weight.size(1) &&
         !torch::GradMode::is_enabled() && !at::autocast::is_autocast_enabled(at::kCPU);
}

// Number: the element type of all three.
template <class Number>
Tensor multiply_row(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor input = x.contiguous();
  const std::int64_t rows = weight.size(0), columns = weight.size(1);
  std::vector<float> products(rows);
  Tensor output = torch::empty(rows, x.options());
  const auto multiply = matvec_variants().front().multiply;
  const auto* weights = weight.const_data_ptr<Number>();
  const auto* addends = bias.defined() ? bias.const_data_ptr<Number>() : nullptr;
  auto* outputs = output.mutable_data_ptr<Number>();
  // One thread per 100,000 weights.
  const std::int64_t grain = std::max<std::int64_t>(1, 100'000 / columns);
  parallel_for(rows, grain, [&](std::int64_t first, std::int64_t count) {
    multiply({std::is_same_v<Number, float> ? WeightType::Float : WeightType::BFloat16, weights + first * columns,
              input.const_data_ptr(), products.data() + first, static_cast<std::size_t>(count),
              static_cast<std::size_t>(columns)});
    for (std::int64_t i = first; i < first + count; ++i) {
      outputs[i] = products[i] + (addends != nullptr ? static_cast<float>(addends[i]) : 0);
    }
  });
  return output;
}

}  // namespace

Tensor fast_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!is_one_row(x, weight, bias)) return at::linear(x, weight, bias);
  const bool is_float = weight.scalar_type() == torch::kFloat;
  const Tensor row = is_float ? multiply_row<float>(x, weight, bias) : multiply_row<at::BFloat16>(x, weight, bias);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return row.view(shape);
}

}  // namespace tandem
