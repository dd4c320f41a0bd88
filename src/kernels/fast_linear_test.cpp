#include "kernels/fast_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "kernels/matvec.h"

namespace tandem {
namespace {

using torch::Tensor;

// 1 x 64 columns are one iteration of the widest loop, 3 x 64 several.
TEST(MatVec, EveryVariantMultipliesAsTorchDoes) {
  torch::manual_seed(1);
  for (const auto& [name, multiply] : matvec_variants()) {
    for (const std::int64_t columns : {64, 192}) {
      for (const auto type : {torch::kFloat, torch::kBFloat16}) {
        const Tensor weight = torch::randn({5, columns}).to(type), x = torch::randn({columns}).to(type);
        Tensor output = torch::full({6}, -1.0F);
        multiply({type == torch::kFloat ? WeightType::Float : WeightType::BFloat16, weight.const_data_ptr(),
                  x.const_data_ptr(), output.data_ptr<float>(), 5, static_cast<std::size_t>(columns)});
        const Tensor expected = weight.to(torch::kDouble).mv(x.to(torch::kDouble));
        EXPECT_TRUE(output.narrow(0, 0, 5).to(torch::kDouble).allclose(expected, 1e-4, 1e-4)) << std::string(name);
        EXPECT_EQ(output[5].item<float>(), -1) << std::string(name);
      }
    }
  }
}

TEST(FastLinear, EqualsTorchForOneRowAndForMore) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const auto& shape : {std::vector<std::int64_t>{1, 1, 128}, {1, 128}, {128}, {2, 3, 128}}) {
      const Tensor x = torch::randn(shape).to(type), weight = torch::randn({2000, 128}).to(type),
                   bias = torch::randn({2000}).to(type);
      for (const Tensor& addend : {bias, Tensor()}) {
        const Tensor expected = at::linear(x, weight, addend), found = fast_linear(x, weight, addend);
        EXPECT_EQ(found.sizes(), expected.sizes());
        EXPECT_EQ(found.scalar_type(), type);
        EXPECT_TRUE(found.allclose(expected, type == torch::kFloat ? 1e-4 : 2e-2, type == torch::kFloat ? 1e-4 : 0.1));
      }
    }
  }
}

TEST(FastLinear, AcceptsANonContiguousRowAndBias) {
  const torch::NoGradGuard no_grad;
  const Tensor x = torch::randn({128, 2}).t().narrow(0, 1, 1), weight = torch::randn({7, 128}),
               bias = torch::randn({7, 2}).select(1, 0);
  EXPECT_TRUE(fast_linear(x, weight, bias).allclose(at::linear(x, weight, bias), 1e-4, 1e-4));
}

TEST(FastLinear, HasGradients) {
  const Tensor x = torch::randn({1, 64}).requires_grad_(), weight = torch::randn({3, 64}).requires_grad_();
  fast_linear(x, weight, {}).sum().backward();
  EXPECT_TRUE(x.grad().allclose(weight.sum(0, true), 1e-4, 1e-4));
  EXPECT_TRUE(weight.grad().allclose(x.expand({3, 64})));
}

}  // namespace
}  // namespace tandem
