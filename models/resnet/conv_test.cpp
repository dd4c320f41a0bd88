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

}  // namespace
}  // namespace tandem
