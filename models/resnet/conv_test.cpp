#include "models/resnet/conv.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <array>

namespace tandem {
namespace {

using torch::Tensor;

// Also where the outer weights meet only padding in one direction (9 x 20), or in both.
TEST(Conv, WithAnyDilationIsThatOfTorch) {
  torch::manual_seed(1);
  for (const auto& [height, width] : {std::array{9, 11}, std::array{9, 20}, std::array{20, 9}, std::array{30, 30}}) {
    for (const std::int64_t stride : {1, 2}) {
      Conv conv(ConvOptions{.inputs = 3, .outputs = 4, .kernel = 3, .stride = stride, .dilation = 12, .bias = true});
      const Tensor x = torch::randn({2, 3, height, width});
      const Tensor weight = conv->weight.detach().clone().requires_grad_();
      const Tensor wanted = torch::conv2d(x, weight, conv->bias.detach(), stride, /*padding=*/12, /*dilation=*/12);
      const Tensor got = conv->forward(x);
      ASSERT_EQ(got.sizes(), wanted.sizes());
      EXPECT_TRUE(got.allclose(wanted, 1e-5, 1e-5));
      got.square().sum().backward();
      wanted.square().sum().backward();
      EXPECT_TRUE(conv->weight.grad().allclose(weight.grad(), 1e-4, 1e-4));
    }
  }
}

// In each direction of 5 x 4 pixels: of three weights, those that meet a pixel.
TEST(Conv, CountsTheProductsWithPixels) {
  const auto flops_of = [](std::int64_t stride, std::int64_t dilation) {
    Conv conv(ConvOptions{.inputs = 2, .outputs = 3, .kernel = 3, .stride = stride, .dilation = dilation});
    conv->forward(torch::zeros({7, 2, 5, 4}));
    return conv->num_flops();
  };
  EXPECT_EQ(flops_of(1, 1), 2 * 2 * 3 * (2 + 3 + 3 + 3 + 2) * (2 + 3 + 3 + 2));
  EXPECT_EQ(flops_of(2, 1), 2 * 2 * 3 * (2 + 3 + 2) * (2 + 3));
  EXPECT_EQ(flops_of(1, 3), 2 * 2 * 3 * (2 + 2 + 1 + 2 + 2) * (2 + 1 + 1 + 2));
  EXPECT_EQ(flops_of(1, 9), 2 * 2 * 3 * 5 * 4) << "only the centre";
}

}  // namespace
}  // namespace tandem
