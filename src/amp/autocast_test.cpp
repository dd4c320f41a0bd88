#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <tandem/mixed_precision.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

torch::ScalarType product_type(torch::ScalarType type = torch::kFloat) {
  const Tensor matrix = torch::ones({2, 2}, type);
  return torch::mm(matrix, matrix).scalar_type();
}

TEST(Autocast, AppliesToItsScope) {
  {
    const Autocast outer(torch::kCPU, Precision::Bf16);
    EXPECT_EQ(product_type(), torch::kBFloat16);
    {
      const Autocast inner(torch::kCPU, Precision::Fp16);
      EXPECT_EQ(product_type(), torch::kHalf);
      const Autocast exact(torch::kCPU, Precision::Fp32);
      EXPECT_EQ(product_type(), torch::kFloat);
    }
    EXPECT_EQ(product_type(), torch::kBFloat16);
  }
  EXPECT_EQ(product_type(), torch::kFloat);
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  EXPECT_EQ(at::autocast::get_autocast_dtype(torch::kCPU), torch::kBFloat16);
}

TEST(Autocast, UsesTheUpdatedWeight) {
  torch::nn::Linear layer(2, 1);
  const Tensor input = torch::ones({1, 2});
  const Autocast autocast(torch::kCPU, Precision::Bf16);
  layer(input);
  {
    const torch::NoGradGuard no_grad;
    layer->weight.fill_(3);
    layer->bias.fill_(1);
  }
  EXPECT_EQ(layer(input).item<float>(), 7);
}

TEST(Autocast, KeepsGradientsAfterAnEvaluationInside) {
  torch::nn::Linear layer(2, 1);
  const Tensor input = torch::ones({1, 2});
  Tensor loss;
  {
    const Autocast autocast(torch::kCPU, Precision::Bf16);
    {
      const torch::NoGradGuard no_grad;
      layer(input);
    }
    loss = layer(input).sum();
  }
  loss.backward();
  EXPECT_TRUE(torch::equal(layer->weight.grad(), torch::ones({1, 2})));
}

TEST(Autocast, KeepsWeightGradientsInFloat32) {
  torch::nn::Linear layer(2, 1);
  Tensor loss;
  {
    const Autocast autocast(torch::kCPU, Precision::Fp16);
    loss = layer(torch::ones({1, 2})).sum();
  }
  loss.backward();
  EXPECT_EQ(layer->weight.grad().scalar_type(), torch::kFloat);
}

TEST(Autocast, RejectsAuto) {
  const Error error = error_of([] { const Autocast autocast(torch::kCPU, Precision::Auto); });
  EXPECT_EQ(error.kind(), ErrorKind::Config);
  EXPECT_TRUE(says(error.message(), {"autocast", "auto"}));
  EXPECT_TRUE(says(error.hint(), {"choose_precision"}));
  EXPECT_EQ(product_type(), torch::kFloat);
}

TEST(DeviceFacts, OfTheCpuHaveNoComputeCapability) { EXPECT_EQ(facts_of(torch::kCPU).cuda_major, 0); }

}  // namespace
}  // namespace tandem
