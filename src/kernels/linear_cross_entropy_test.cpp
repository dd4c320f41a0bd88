#include "kernels/linear_cross_entropy.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <tandem/error.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

// A loss with its gradients.
struct Result {
  Tensor sum, x_grad, weight_grad;
};

using Loss = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& targets)>;

Result result_of(const Loss& loss, at::ScalarType type) {
  torch::manual_seed(5);
  const Tensor x = torch::randn({13, 8}).to(type).requires_grad_();
  const Tensor weight = torch::randn({21, 8}).to(type).requires_grad_();
  const Tensor sum = loss(x, weight, torch::randint(21, {13}, torch::kLong));
  (0.5 * sum).backward();
  return {sum.detach(), x.grad(), weight.grad()};
}

Loss in_chunks(std::int64_t max_elements) {
  return [=](const Tensor& x, const Tensor& weight, const Tensor& targets) {
    return linear_cross_entropy(x, weight, targets, max_elements);
  };
}

void expect_close(const Result& a, const Result& b, double tolerance) {
  EXPECT_TRUE(a.sum.allclose(b.sum, tolerance, 0)) << a.sum << b.sum;
  EXPECT_TRUE(a.x_grad.allclose(b.x_grad, tolerance, tolerance));
  EXPECT_TRUE(a.weight_grad.allclose(b.weight_grad, tolerance, tolerance));
}

TEST(LinearCrossEntropy, EqualsTheReferenceForAnyChunkSize) {
  const Result plain = result_of(plain_linear_cross_entropy, torch::kFloat);
  EXPECT_GT(plain.weight_grad.abs().max().item<double>(), 0.5);
  for (const std::int64_t max_elements : {1, 21, 63, 100, 1 << 25}) {
    expect_close(result_of(in_chunks(max_elements), torch::kFloat), plain, 1e-5);
  }
}

TEST(LinearCrossEntropy, GivesGradientsTheTypeOfTheirTensors) {
  const Result plain = result_of(plain_linear_cross_entropy, torch::kBFloat16);
  const Result chunks = result_of(in_chunks(42), torch::kBFloat16);
  EXPECT_EQ(chunks.sum.scalar_type(), torch::kFloat);
  EXPECT_EQ(chunks.x_grad.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(chunks.weight_grad.scalar_type(), torch::kBFloat16);
  expect_close(chunks, plain, 3e-2);
}

TEST(LinearCrossEntropy, MultipliesInTheTypeOfAutocast) {
  const Result full = result_of(plain_linear_cross_entropy, torch::kFloat);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const Result plain = result_of(plain_linear_cross_entropy, torch::kFloat);
  const Result chunks = result_of(in_chunks(42), torch::kFloat);
  EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_EQ(chunks.sum.item<float>(), plain.sum.item<float>());
  EXPECT_NE(chunks.sum.item<float>(), full.sum.item<float>());
  expect_close(chunks, plain, 3e-2);
}

TEST(LinearCrossEntropy, SkipsGradientsThatAreNotNeeded) {
  const Tensor x = torch::randn({4, 3}), weight = torch::randn({5, 3}).requires_grad_();
  const Tensor targets = torch::tensor({0, 4, 2, 2});
  linear_cross_entropy(x, weight, targets).backward();
  EXPECT_FALSE(x.grad().defined());
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(linear_cross_entropy(x, weight, targets).requires_grad());
}

TEST(LinearCrossEntropy, RejectsDoubleBackward) {
  const Tensor x = torch::randn({4, 3}).requires_grad_();
  const Tensor sum = linear_cross_entropy(x, torch::randn({5, 3}), torch::tensor({0, 4, 2, 2}));
  EXPECT_EQ(error_of([&] { torch::autograd::grad({sum}, {x}, {}, {}, /*create_graph=*/true); }).kind(),
            ErrorKind::Config);
}

}  // namespace
}  // namespace tandem
