#include <gtest/gtest.h>
#include <tandem/batch_norm.h>
#include <tandem/recompute.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "gpu/gpu_test.h"
#include "kernels/linear_cross_entropy.h"

namespace tandem {
namespace {

using torch::Tensor;

// Two ranks with the same batch equal one rank with that batch twice, up to the unbiased variance.
Tensors train_joined(torch::Device device, torch::ScalarType type) {
  torch::manual_seed(5);
  BatchNorm layer(3);
  layer->to(device);
  layer->set_gather([](const Tensor& row) { return torch::stack({row, row}); });
  const Tensor input = torch::randn({4, 3, 5, 5}).to(device, type).requires_grad_();
  const Tensor output = layer->forward(input);
  output.backward(torch::randn({4, 3, 5, 5}).to(device, type));
  return {output, input.grad(), layer->weight.grad(), layer->running_var};
}

TEST_F(GpuTest, BatchNormOverRanksEqualsThatOfTheCpu) {
  for (const auto& [type, tolerance] : {std::pair(torch::kFloat, 1e-4), std::pair(torch::kBFloat16, 5e-2)}) {
    const Tensors cpu = train_joined(torch::kCPU, type), cuda = train_joined(torch::kCUDA, type);
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_EQ(cuda[i].scalar_type(), cpu[i].scalar_type());
      EXPECT_TRUE(cuda[i].cpu().allclose(cpu[i], tolerance, tolerance)) << i;
    }
  }
}

Tensors train_dropout(bool again) {
  torch::manual_seed(6);
  torch::nn::Sequential block(torch::nn::Linear(64, 64), torch::nn::Dropout(0.5));
  block->to(torch::kCUDA);
  const Tensor input = torch::randn({32, 64}, torch::kCUDA).requires_grad_();
  const Tensor output = again ? recompute(block, input) : block->forward(input);
  output.square().sum().backward();
  return {input.grad(), block->parameters()[0].grad(), torch::rand({4}, torch::kCUDA)};
}

TEST_F(GpuTest, RecomputeGivesTheSameBitsThroughDropout) {
  const Tensors plain = train_dropout(false), again = train_dropout(true);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].equal(again[i])) << i;
}

// The loss and its gradients, in chunks of two rows.
Tensors cross_entropy_on(torch::Device device, torch::ScalarType type) {
  torch::manual_seed(7);
  const Tensor x = torch::randn({13, 16}).to(device, type).requires_grad_();
  const Tensor weight = torch::randn({24, 16}).to(device, type).requires_grad_();
  const Tensor targets = torch::randint(24, {13}, torch::kLong).to(device);
  const Tensor sum = linear_cross_entropy(x, weight, targets, /*max_elements=*/48);
  sum.backward();
  return {sum.detach(), x.grad(), weight.grad()};
}

TEST_F(GpuTest, LinearCrossEntropyEqualsThatOfTheCpu) {
  const Tensors exact = cross_entropy_on(torch::kCPU, torch::kFloat);
  for (const auto& [type, tolerance] : {std::pair(torch::kFloat, 1e-4), std::pair(torch::kHalf, 1e-2)}) {
    const Tensors cuda = cross_entropy_on(torch::kCUDA, type);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_TRUE(cuda[i].cpu().to(torch::kFloat).allclose(exact[i], tolerance, tolerance)) << i;
    }
  }
}

}  // namespace
}  // namespace tandem
