#include <tandem/mixed_precision.h>
#include <tandem/optimizer.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "gpu/gpu_test.h"

namespace tandem {
namespace {

using torch::Tensor;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(std::vector<ParameterGroup>)>;

NamedTensorList make_parameters(torch::Device device) {
  NamedTensorList parameters;
  for (const auto& [name, size] : {std::pair("w", 70'001), std::pair("b", 33)}) {
    parameters.emplace_back(name, torch::arange(size, torch::kFloat).mul(0.7).cos().to(device).requires_grad_());
  }
  return parameters;
}

// Six steps on sums of 48 gradients, clipped; the fourth overflows.
std::vector<Tensor> train(torch::Device device, const MakeOptimizer& make) {
  const NamedTensorList parameters = make_parameters(device);
  const auto optimizer = make({{.parameters = parameters, .weight_decay = 0.1}});
  for (int step = 0; step < 6; ++step) {
    for (const auto& [name, parameter] : parameters) {
      const Tensor angles = torch::arange(parameter.numel(), torch::kFloat).mul(0.3).add(step);
      parameter.mutable_grad() = (angles.sin() * (step == 3 ? INFINITY : 48)).to(device);
    }
    const Tensor count = torch::full({}, 48, torch::device(device).dtype(torch::kFloat));
    const Tensor norm = global_norm(optimizer->gradients()) / count;
    optimizer->update(0.01, count / clip_coefficient(norm, 1), found_inf(norm));
  }
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parameters) result.push_back(tensor.detach().cpu());
  for (const auto& [name, tensor] : optimizer->state()) result.push_back(tensor.cpu());
  return result;
}

TEST_F(GpuTest, OptimizersEqualThoseOfTheCpuAndSkipAnOverflow) {
  const std::vector<MakeOptimizer> kinds = {[](auto groups) { return std::make_unique<AdamW>(std::move(groups)); },
                                            [](auto groups) {
                                              return std::make_unique<Sgd>(
                                                  std::move(groups), SgdOptions{.momentum = 0.9, .nesterov = true});
                                            }};
  for (const MakeOptimizer& make : kinds) {
    const auto cpu = train(torch::kCPU, make), cuda = train(torch::kCUDA, make);
    for (std::size_t i = 0; i < cpu.size(); ++i) EXPECT_TRUE(cuda[i].allclose(cpu[i], 1e-4, 1e-6)) << i;
  }
}

TEST_F(GpuTest, ASumOver4096TokensDoesNotOverflowFp16) {
  LossScaler scaler(Precision::Fp16, torch::kCUDA);
  scaler.normalize_by(4096);
  torch::nn::Linear head(4, 8);
  head->to(torch::kCUDA);
  Tensor loss_sum;
  {
    const Autocast autocast(torch::kCUDA, Precision::Fp16);
    const Tensor logits = head(torch::ones({4096, 4}, torch::kCUDA));
    EXPECT_EQ(logits.scalar_type(), torch::kHalf);
    loss_sum = torch::cross_entropy_loss(logits, torch::zeros({4096}, torch::device(torch::kCUDA).dtype(torch::kLong)),
                                         {}, at::Reduction::Sum);
  }
  scaler.scaled(loss_sum).backward();
  const Tensor gradient = head->bias.grad() / scaler.divisor(torch::tensor(4096, torch::kCUDA));
  EXPECT_NEAR(gradient.sum().item<float>(), 0, 1e-3);
  EXPECT_LT(gradient[0].item<float>(), -0.1);
  scaler.update(found_inf(gradient.sum()));
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.update(torch::ones({}, torch::kCUDA));
  EXPECT_EQ(scaler.scale(), 32768);
}

TEST_F(GpuTest, HasAComputeCapability) { EXPECT_GE(facts_of({torch::kCUDA, 0}).cuda_major, 5); }

}  // namespace
}  // namespace tandem
