#include "kernels/fused_norm.h"

#include <gtest/gtest.h>
#include <tandem/error.h>
#include <torch/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error_test.h"
#include "gpu/gpu_test.h"

namespace tandem {
namespace {

using torch::Tensor;

struct Pass {
  Activation activation = Activation::None;
  bool has_shortcut = false;
  bool is_joined = false;  // two ranks with this batch
  std::array<std::int64_t, 4> shape = {3, 16, 5, 7};
};

// Output, gradients and statistics of a training pass, on the CPU in double. Inputs are rounded to `type` first; a mean
// far from 0 would show sums that cancel out.
std::vector<Tensor> train_norm(const Pass& pass, torch::Device device, torch::ScalarType type) {
  torch::manual_seed(3);
  BatchNorm layer(pass.shape[1]);
  {
    const torch::NoGradGuard no_grad;
    layer->weight.uniform_(0.5, 1.5);
    layer->bias.uniform_(-0.5, 0.5);
  }
  const auto draw = [&](double mean) {
    return (torch::randn(pass.shape) + mean).to(type).to(device.is_cpu() ? torch::kDouble : type);
  };
  const auto format = at::MemoryFormat::ChannelsLast;
  const Tensor x = draw(8).to(device).contiguous(format).requires_grad_();
  const Tensor shortcut = pass.has_shortcut ? draw(0).to(device).contiguous(format).requires_grad_() : Tensor();
  const Tensor slope = draw(0.5).to(device).contiguous(format);
  layer->to(device, device.is_cpu() ? torch::kDouble : torch::kFloat);
  Tensor exchanged;  // last of all, by the backward pass: another rank may do it on the other way
  if (pass.is_joined) layer->set_gather([&](const Tensor& row) { return exchanged = row, torch::stack({row, row}); });
  const Tensor output = layer->forward_with(x, pass.activation, shortcut);
  EXPECT_EQ(output.scalar_type(), x.scalar_type());
  EXPECT_TRUE(output.is_contiguous(format));
  output.backward(slope);
  std::vector<Tensor> all = {output.detach(),     x.grad(),          layer->weight.grad(), layer->bias.grad(),
                             layer->running_mean, layer->running_var};
  if (pass.has_shortcut) all.push_back(shortcut.grad());
  if (pass.is_joined) all.push_back(exchanged);
  for (Tensor& one : all) one = one.to(torch::kCPU, torch::kDouble);
  return all;
}

const std::vector<Pass> kPasses = {{},
                                   {.activation = Activation::Relu},
                                   {.activation = Activation::Silu},
                                   {.has_shortcut = true},
                                   {.activation = Activation::Relu, .has_shortcut = true},
                                   {.activation = Activation::Relu, .has_shortcut = true, .is_joined = true},
                                   {.activation = Activation::Silu, .is_joined = true},
                                   {.activation = Activation::Silu, .has_shortcut = true},
                                   {.activation = Activation::Relu, .shape = {1, 8, 2, 3}},
                                   {.activation = Activation::Relu, .shape = {2, 72, 33, 41}},
                                   {.activation = Activation::Silu, .shape = {4, 1032, 9, 9}}};

double relative_difference(const Tensor& got, const Tensor& wanted) {
  return ((got - wanted).norm() / (wanted.norm() + 1e-6)).item<double>();
}

class FusedNorm : public GpuTest {};

TEST_F(FusedNorm, EqualsBatchNormAndWhatFollowsInDouble) {
  const std::pair<torch::ScalarType, double> types[] = {
      {torch::kFloat, 2e-5}, {torch::kHalf, 2e-3}, {torch::kBFloat16, 1e-2}};
  for (std::size_t number = 0; number < kPasses.size(); ++number) {
    for (const auto& [type, tolerance] : types) {
      SCOPED_TRACE(std::to_string(number) + " " + c10::toString(type));
      const auto wanted = train_norm(kPasses[number], torch::kCPU, type),
                 got = train_norm(kPasses[number], torch::Device("cuda:0"), type);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_LT(relative_difference(got[i], wanted[i]), tolerance) << i;  // NaN is not less
      }
    }
  }
}

TEST_F(FusedNorm, GivesTheSameBitsTwice) {
  for (const Pass& pass : kPasses) {
    const auto once = train_norm(pass, torch::Device("cuda:0"), torch::kHalf),
               again = train_norm(pass, torch::Device("cuda:0"), torch::kHalf);
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(once[i].equal(again[i])) << i;
  }
}

TEST_F(FusedNorm, TakesChannelsLastImagesWhoseChannelsAreAMultipleOf8) {
  const Tensor x = torch::zeros({2, 16, 3, 3}, torch::kCUDA);
  EXPECT_FALSE(can_fuse_norm(x));
  EXPECT_TRUE(can_fuse_norm(x.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(can_fuse_norm(x.to(torch::kDouble).contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(can_fuse_norm(torch::zeros({2, 12, 3, 3}, torch::kCUDA).contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(can_fuse_norm(torch::zeros({2, 16, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)));
}

TEST_F(FusedNorm, RefusesDoubleBackward) {
  BatchNorm layer(8);
  layer->to(torch::kCUDA);
  const Tensor x = torch::randn({2, 8, 3, 3}, torch::kCUDA).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const Tensor sum = layer->forward(x).square().sum();
  const Error error = error_of([&] { sum.backward({}, /*retain_graph=*/true, /*create_graph=*/true); });
  EXPECT_TRUE(says(error.message(), {"double backward"}));
  EXPECT_TRUE(says(error.hint(), {"contiguous"}));
}

}  // namespace
}  // namespace tandem
