#include "models/deeplab/deeplab.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "gpu/gpu_test.h"
#include "models/deeplab/lorm.h"
#include "models/deeplab/pixel_losses.h"
#include "train/convolutions.h"

namespace tandem {
namespace {

using torch::Tensor;

const torch::Device kGpu("cuda:0");

// 21 classes and 17 x 17 = 289 positions are what cuBLAS and cuDNN need zeros for.
struct Scene {
  Tensor images, labels, pseudo;
};

Scene random_scene(std::int64_t size) {
  torch::manual_seed(4);
  Scene scene{torch::randn({4, 3, size, size}), torch::randint(0, 21, {4, size, size}, torch::kByte),
              torch::zeros({4, size, size}, torch::kByte)};
  scene.labels.masked_fill_(torch::rand({4, size, size}) < 0.5, 255);
  scene.pseudo.narrow(1, 10, size / 2).narrow(2, 20, size / 2).fill_(3);
  return scene;
}

Deeplab random_model() {
  torch::manual_seed(5);
  Deeplab model(DeeplabOptions{.trunk = {.layers = 14, .width = 16}});
  to_channels_last(*model);
  return model;
}

// Two SGD steps; the loss of each, and all gradients of the last.
std::vector<Tensor> train_deeplab(torch::Device device, torch::ScalarType type) {
  Deeplab model = random_model();
  model->to(device);
  const Scene scene = random_scene(129);
  const Tensor images = scene.images.to(device).contiguous(at::MemoryFormat::ChannelsLast);
  std::vector<Tensor> all;
  for (int step = 0; step < 2; ++step) {
    model->zero_grad();
    at::autocast::set_autocast_enabled(device.type(), type != torch::kFloat);
    at::autocast::set_autocast_dtype(device.type(), type);
    const DeeplabOutput output = model->forward(images, scene.pseudo.to(device));
    const PixelLosses losses =
        pixel_losses(output.logits, {.labels = scene.labels.to(device), .pseudo = scene.pseudo.to(device)}, {});
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device.type(), false);
    const Tensor loss = losses.scribble.sum / losses.scribble.count + losses.pseudo.sum / losses.pseudo.count +
                        output.lorm.sum / output.lorm.count;
    loss.backward();
    all.push_back(loss.detach().cpu());
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.01);
  }
  for (const Tensor& parameter : model->parameters()) all.push_back(parameter.grad().cpu().contiguous());
  return all;
}

class GpuDeeplab : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    choose_convolutions();  // as the Accelerator
  }
};

TEST_F(GpuDeeplab, TrainsAsOnTheCpu) {
  const auto wanted = train_deeplab(torch::kCPU, torch::kFloat);
  for (const auto& [type, tolerance] :
       {std::pair(torch::kFloat, 5e-3), std::pair(torch::kHalf, 2e-2), std::pair(torch::kBFloat16, 5e-2)}) {
    const auto got = train_deeplab(kGpu, type);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(got[i].item<double>(), wanted[i].item<double>(), tolerance) << c10::toString(type);
  }
}

TEST_F(GpuDeeplab, GivesTheSameBitsTwice) {
  for (const auto type : {torch::kFloat, torch::kHalf, torch::kBFloat16}) {
    const auto once = train_deeplab(kGpu, type), again = train_deeplab(kGpu, type);
    for (std::size_t i = 0; i < once.size(); ++i)
      EXPECT_TRUE(once[i].equal(again[i])) << c10::toString(type) << " " << i;
  }
}

TEST_F(GpuDeeplab, HasTheLormLossOfTheCpu) {
  torch::manual_seed(7);
  Lorm lorm(32);
  lorm->to(torch::kDouble);
  const Tensor features = torch::randn({3, 32, 9, 11}, torch::kDouble);
  Tensor pseudo = torch::zeros({3, 9, 11}, torch::kByte);
  pseudo[0].narrow(0, 2, 5).fill_(1);
  pseudo[2].narrow(1, 3, 2).fill_(4);
  std::vector<Tensor> results;
  for (const torch::Device device : {torch::Device("cpu"), kGpu}) {
    lorm->zero_grad();
    lorm->to(device);
    const Tensor x = features.to(device).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
    const SumAndCount loss = lorm->forward(x, pseudo.to(device));
    loss.sum.backward();
    Tensor all = torch::cat({loss.sum.view(1), loss.count.view(1), x.grad().flatten()}).detach();
    for (const Tensor& parameter : lorm->parameters()) all = torch::cat({all, parameter.grad().flatten()});
    results.push_back(all.cpu());
  }
  EXPECT_TRUE(results[1].allclose(results[0], 1e-9, 1e-9));
}

TEST_F(GpuDeeplab, ConvolvesToAnyNumberOfClasses) {
  torch::manual_seed(6);
  const Tensor x = torch::randn({2, 16, 9, 11});
  for (const bool has_bias : {false, true}) {
    std::vector<Tensor> results;
    Conv conv(ConvOptions{.inputs = 16, .outputs = 21, .kernel = 3, .dilation = 2, .bias = has_bias});
    for (const torch::Device device : {torch::Device("cpu"), kGpu}) {
      conv->zero_grad();
      conv->to(device);
      const Tensor y = conv->forward(x.to(device).contiguous(at::MemoryFormat::ChannelsLast));
      EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
      y.square().sum().backward();
      results.push_back(torch::cat({y.flatten().cpu(), conv->weight.grad().flatten().cpu()}).detach());
    }
    EXPECT_LT(((results[1] - results[0]).norm() / results[0].norm()).item<double>(), 2e-3);  // TF32
  }
}

}  // namespace
}  // namespace tandem
