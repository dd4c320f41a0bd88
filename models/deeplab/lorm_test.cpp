#include "models/deeplab/lorm.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "models/deeplab/rectify.h"

namespace tandem {
namespace {

using torch::Tensor;

Lorm double_lorm(std::int64_t channels) {
  torch::manual_seed(5);
  Lorm lorm(channels);
  lorm->to(torch::kDouble);
  return lorm;
}

// The definition, with the whole matrix; no labels of 255, and at the size of the features.
Tensor plain_sum(Lorm& lorm, const Tensor& x, const Tensor& pseudo) {
  const auto parameters = lorm->named_parameters();
  const auto rows = [&](const std::string& name) {
    return torch::conv2d(x, parameters[name + ".weight"], parameters[name + ".bias"]).flatten(2).transpose(1, 2);
  };
  const Tensor q = rows("query"), k = rows("key"), v = x.flatten(2).transpose(1, 2);
  const Tensor cosines = q.matmul(k.transpose(1, 2)) / (q.norm(2, -1, true) * k.norm(2, -1, true).transpose(1, 2));
  const Tensor mask = (pseudo > 0).flatten(1).unsqueeze(2);
  const Tensor rectified = parameters["gamma"] * mask * cosines.softmax(-1).matmul(v);
  return (v - rectified).square().sum();
}

TEST(Lorm, WithoutForegroundIsTheMeanOfTheSquaresThatAreNotZero) {
  Lorm lorm = double_lorm(2);
  const Tensor x = torch::tensor({1.0, 0.0, -2.0, 3.0, 0.0, 4.0, 0.0, 0.5}, torch::kDouble).view({1, 2, 2, 2});
  for (const int label : {0, 255}) {
    const SumAndCount loss = lorm(x, torch::full({1, 5, 5}, label, torch::kByte));
    EXPECT_DOUBLE_EQ(loss.sum.item<double>(), 1 + 4 + 9 + 16 + 0.25);
    EXPECT_EQ(loss.count.item<std::int64_t>(), 5);
  }
}

// A rank whose part of the step is padding.
TEST(Lorm, OfNoImageIsNothing) {
  Lorm lorm = double_lorm(2);
  const Tensor x = torch::zeros({0, 2, 3, 3}, torch::kDouble).requires_grad_();
  const SumAndCount loss = lorm(x, torch::zeros({0, 5, 5}, torch::kByte));
  EXPECT_EQ(loss.sum.item<double>(), 0);
  EXPECT_EQ(loss.count.item<std::int64_t>(), 0);
  loss.sum.backward();
  for (const Tensor& parameter : lorm->parameters()) EXPECT_EQ(parameter.grad().abs().max().item<double>(), 0);
}

TEST(Lorm, AveragesTheForegroundOverAllPositions) {
  Lorm lorm = double_lorm(1);
  const torch::NoGradGuard no_grad;
  // One channel: cosines are 1 or -1. Both projections are the identity.
  for (auto& item : lorm->named_parameters()) item.value().fill_(item.key().ends_with("bias") ? 0.0 : 1.0);
  const Tensor x = torch::tensor({2.0, -1.0, 4.0}, torch::kDouble).view({1, 1, 1, 3});
  const Tensor pseudo = torch::tensor({7, 0, 0}, torch::kByte).view({1, 1, 3});
  const double e = std::exp(1.0);
  const double average = (2 * e - 1 / e + 4 * e) / (e + 1 / e + e);
  const SumAndCount loss = lorm(x, pseudo);
  EXPECT_NEAR(loss.sum.item<double>(), (2 - average) * (2 - average) + 1 + 16, 1e-12);
  EXPECT_EQ(loss.count.item<std::int64_t>(), 3);
}

TEST(Lorm, EqualsItsDefinitionInSumAndGradients) {
  Lorm lorm = double_lorm(6);
  const auto parameters = lorm->parameters();
  for (const double foreground : {0.0, 0.4, 1.0}) {
    const Tensor x = torch::randn({3, 6, 5, 7}, torch::kDouble).requires_grad_();
    const Tensor pseudo = (torch::rand({3, 5, 7}) < foreground).to(torch::kByte) * 3;
    std::vector<Tensor> inputs = {x};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    const Tensor ours = lorm(x, pseudo).sum, plain = plain_sum(lorm, x, pseudo);
    EXPECT_TRUE(ours.allclose(plain, 1e-12)) << foreground;
    const auto our_grads = torch::autograd::grad({ours}, inputs);
    const auto plain_grads = torch::autograd::grad({plain}, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(our_grads[i].allclose(plain_grads[i], 1e-9, 1e-11)) << i;
    }
    if (foreground == 0) continue;
    for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_GT(our_grads[i].abs().max().item<double>(), 1e-3) << i;
  }
}

TEST(Lorm, ProcessesManyPositionsInBlocks) {
  Lorm lorm = double_lorm(2);
  const Tensor x = torch::randn({1, 2, 40, 40}, torch::kDouble).requires_grad_();  // 1600^2 is more than a block
  const Tensor pseudo = torch::ones({1, 40, 40}, torch::kByte);
  const Tensor ours = lorm(x, pseudo).sum, plain = plain_sum(lorm, x, pseudo);
  EXPECT_TRUE(ours.allclose(plain, 1e-12));
  EXPECT_TRUE(torch::autograd::grad({ours}, {x})[0].allclose(torch::autograd::grad({plain}, {x})[0], 1e-9, 1e-11));
}

TEST(Lorm, GivesAPositionWithoutQueryOrKeyFiniteGradients) {
  Lorm lorm = double_lorm(3);
  const Tensor x = torch::randn({1, 3, 2, 2}, torch::kDouble);
  x.select(2, 0).zero_();
  x.requires_grad_();
  const SumAndCount loss = lorm(x, torch::ones({1, 2, 2}, torch::kByte));
  loss.sum.backward();
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

TEST(Lorm, ChangesNoInput) {  // D13
  Lorm lorm = double_lorm(3);
  const Tensor x = torch::randn({2, 3, 4, 4}, torch::kDouble), x_before = x.clone();
  const Tensor pseudo = torch::randint(0, 2, {2, 9, 9}, torch::kByte) * 255, pseudo_before = pseudo.clone();
  lorm(x, pseudo);
  EXPECT_TRUE(x.equal(x_before));
  EXPECT_TRUE(pseudo.equal(pseudo_before));
}

// Of this process, in MB.
double resident_memory() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

TEST(Lorm, KeepsNoAttentionMatrixForTheBackwardPass) {
  torch::manual_seed(5);
  Lorm lorm(4);
  const Tensor x = torch::randn({4, 4, 64, 64}).requires_grad_();  // each matrix would have 67 MB
  const Tensor pseudo = torch::ones({4, 64, 64}, torch::kByte);
  const double before = resident_memory();
  const SumAndCount loss = lorm(x, pseudo);
  EXPECT_LT(resident_memory() - before, 100);
  loss.sum.backward();
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

TEST(Lorm, UnderAutocastIsCloseToFloat) {
  torch::manual_seed(5);
  Lorm lorm(32);
  const Tensor x = torch::randn({2, 32, 6, 6}).relu().mul_(20), pseudo = torch::ones({2, 6, 6}, torch::kByte);
  const Tensor exact_x = x.clone().requires_grad_();
  const SumAndCount exact = lorm(exact_x, pseudo);
  exact.sum.backward();
  for (const auto type : {torch::kHalf, torch::kBFloat16}) {
    const Tensor half_x = x.to(type).requires_grad_();
    at::autocast::set_autocast_dtype(at::kCPU, type);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const SumAndCount half = lorm(half_x, pseudo);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    half.sum.backward();
    EXPECT_EQ(half.sum.scalar_type(), torch::kFloat);
    EXPECT_NEAR(half.sum.item<float>() / exact.sum.item<float>(), 1, 0.01);
    const Tensor error = half_x.grad().to(torch::kFloat) - exact_x.grad();
    EXPECT_LT((error.norm() / exact_x.grad().norm()).item<float>(), 0.02);
  }
  at::autocast::set_autocast_dtype(at::kCPU, torch::kBFloat16);
}

TEST(Lorm, SumsHalfPrecisionInFloat) {
  const Tensor x = torch::full({1, 64, 32}, 200.0, torch::kHalf);
  const Tensor empty = torch::empty({0, 32}, torch::kHalf);
  const SumAndCount loss = rectification({.features = x,
                                          .query = empty,
                                          .key = x,
                                          .gamma = torch::ones(1),
                                          .rows = torch::empty({0}, torch::kLong),
                                          .counts = {0}});
  EXPECT_EQ(loss.sum.scalar_type(), torch::kFloat);
  EXPECT_EQ(loss.sum.item<float>(), 64 * 32 * 200.0F * 200.0F);
}

}  // namespace
}  // namespace tandem
