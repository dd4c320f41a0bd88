#include "models/deeplab/pixel_losses.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/functional/loss.h>

#include <cmath>
#include <vector>

namespace tandem {
namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

struct Scene {
  Tensor logits, labels, pseudo, map;
};

Scene random_scene(std::int64_t seed = 1) {
  torch::manual_seed(seed);
  Scene scene{.logits = torch::randn({3, 4, 5, 6}, torch::kDouble) * 2,
              .labels = torch::randint(0, 4, {3, 5, 6}, torch::kByte),
              .pseudo = torch::randint(0, 4, {3, 5, 6}, torch::kByte),
              .map = torch::randint(0, 256, {3, 5, 6}, torch::kByte)};
  scene.labels.masked_fill_(torch::rand({3, 5, 6}) < 0.6, 255);
  scene.pseudo.masked_fill_(torch::rand({3, 5, 6}) < 0.1, 255);
  scene.map.masked_fill_(torch::rand({3, 5, 6}) < 0.3, 0);
  scene.logits.requires_grad_();
  return scene;
}

Tensor mean_of(const SumAndCount& term) { return term.sum / term.count; }

void expect_same(const Tensor& ours, const Tensor& expected, const Tensor& logits) {
  EXPECT_NEAR(ours.item<double>(), expected.item<double>(), 1e-12);
  const Tensor our_grad = torch::autograd::grad({ours}, {logits}, {}, /*retain_graph=*/true)[0];
  const Tensor grad = torch::autograd::grad({expected}, {logits})[0];
  EXPECT_TRUE(our_grad.allclose(grad, 1e-10, 1e-13)) << (our_grad - grad).abs().max().item<double>();
}

Tensor torch_loss(const Tensor& logits, const Tensor& labels, double smoothing = 0, const Tensor& weights = {}) {
  auto options = F::CrossEntropyFuncOptions().ignore_index(255).label_smoothing(smoothing);
  if (weights.defined()) options.weight(weights);
  return F::cross_entropy(logits, labels.to(torch::kLong), options);
}

TEST(PixelLosses, OfLabelsAreTheCrossEntropyWithout255) {
  const Scene scene = random_scene();
  for (const auto type : {torch::kByte, torch::kLong}) {
    const PixelLosses losses = pixel_losses(scene.logits, {.labels = scene.labels.to(type)});
    expect_same(mean_of(losses.scribble), torch_loss(scene.logits, scene.labels), scene.logits);
    EXPECT_EQ(losses.scribble.count.item<double>(), (scene.labels != 255).sum().item<double>());
    EXPECT_FALSE(losses.pseudo.sum.defined() || losses.entropy_s.sum.defined() || losses.dice.sum.defined());
  }
}

TEST(PixelLosses, AreTheSameInBothLayouts) {
  const Scene scene = random_scene();
  const Tensor last = scene.logits.detach().contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const Tensor weights = torch::tensor({0.5, 2.0, 1.0, 0.25}, torch::kDouble);
  const PixelTargets targets{
      .labels = scene.labels, .pseudo = scene.pseudo, .near_scribble = scene.map, .near_contour = 255 - scene.map};
  const PixelLossOptions options{.label_smoothing = 0.1, .class_weights = weights};
  std::vector<Tensor> values, grads;
  for (const Tensor& logits : {scene.logits, last}) {
    const PixelLosses all = pixel_losses(logits, targets, options);
    values.push_back(mean_of(all.scribble) + mean_of(all.pseudo) + mean_of(all.entropy_s) + mean_of(all.entropy_c));
    grads.push_back(torch::autograd::grad({values.back()}, {logits})[0]);
  }
  EXPECT_NEAR(values[0].item<double>(), values[1].item<double>(), 1e-12);
  EXPECT_TRUE(grads[0].allclose(grads[1], 1e-12, 1e-14));
  EXPECT_TRUE(grads[1].is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(PixelLosses, OfPseudoLabelsAreSmoothedAndWeightedAsInTorch) {
  const Scene scene = random_scene();
  const Tensor weights = torch::tensor({0.5, 2.0, 1.0, 0.25}, torch::kDouble);
  for (const double smoothing : {0.0, 0.1}) {
    for (const Tensor& w : {Tensor(), weights}) {
      const PixelLosses losses = pixel_losses(scene.logits, {.labels = scene.labels, .pseudo = scene.pseudo},
                                              {.label_smoothing = smoothing, .class_weights = w});
      expect_same(mean_of(losses.pseudo), torch_loss(scene.logits, scene.pseudo, smoothing, w), scene.logits);
      expect_same(mean_of(losses.scribble), torch_loss(scene.logits, scene.labels, 0, w), scene.logits);
    }
  }
}

TEST(PixelLosses, OfSeveralChunksOfImagesAreTheSame) {
  torch::manual_seed(2);
  const Tensor logits = torch::randn({3, 2, 2100, 2100}).requires_grad_();  // two chunks
  const Tensor labels = torch::randint(0, 2, {3, 2100, 2100}, torch::kByte);
  const Tensor ours = mean_of(pixel_losses(logits, {.labels = labels}).scribble), theirs = torch_loss(logits, labels);
  EXPECT_NEAR(ours.item<double>(), theirs.item<double>(), 1e-5);
  EXPECT_TRUE(torch::autograd::grad({ours}, {logits})[0].allclose(torch::autograd::grad({theirs}, {logits})[0], 1e-4));
}

TEST(PixelLosses, EntropyOfUniformLogitsIsLogKTimesTheMeanOfTheMap) {
  const Tensor map = torch::tensor({{{0, 255, 51}}}, torch::kByte);
  const PixelLosses losses = pixel_losses(torch::zeros({1, 5, 1, 3}, torch::kDouble), {.near_contour = map});
  EXPECT_NEAR(mean_of(losses.entropy_c).item<double>(), std::log(5.0) * (1 + 0.2) / 2, 1e-12);
  EXPECT_EQ(losses.entropy_c.count.item<double>(), 2);
  EXPECT_FALSE(losses.entropy_s.sum.defined());
}

TEST(PixelLosses, EntropyEqualsItsDefinition) {
  const Scene scene = random_scene();
  const Tensor p = scene.logits.softmax(1);
  const Tensor expected = -(p * p.log()).sum(1).mul(scene.map.to(torch::kDouble) / 255).sum() / (scene.map > 0).sum();
  expect_same(mean_of(pixel_losses(scene.logits, {.near_scribble = scene.map}).entropy_s), expected, scene.logits);
}

TEST(PixelLosses, WithoutPixelsAreZeroOverZero) {
  const Tensor logits = torch::randn({1, 3, 2, 2}).requires_grad_();
  const PixelLosses losses = pixel_losses(
      logits,
      {.labels = torch::full({1, 2, 2}, 255, torch::kByte), .near_scribble = torch::zeros({1, 2, 2}, torch::kByte)},
      {.mined_fraction = 0.5, .dice = true});
  for (const SumAndCount& term : {losses.scribble, losses.entropy_s, losses.dice}) {
    EXPECT_EQ(term.sum.item<float>(), 0);
    EXPECT_EQ(term.count.item<double>(), 0);
  }
  const Tensor all = losses.scribble.sum + losses.entropy_s.sum + losses.dice.sum;
  EXPECT_EQ(torch::autograd::grad({all}, {logits})[0].abs().max().item<float>(), 0);
}

TEST(PixelLosses, MiningKeepsTheHardestLabelledPixels) {
  // Class 0 is right with probabilities 1/2, 1/4, 1/8, 1/16; the fifth pixel, the hardest, has no label.
  const Tensor odds = torch::tensor({1.0, 3.0, 7.0, 15.0, 1e6}, torch::kDouble);
  const Tensor logits = torch::stack({torch::zeros(5, torch::kDouble), odds.log()}).view({1, 2, 1, 5}).requires_grad_();
  const Tensor labels = torch::tensor({0, 0, 0, 0, 255}, torch::kByte).view({1, 1, 5});
  const PixelLosses losses = pixel_losses(logits, {.labels = labels}, {.mined_fraction = 0.3});  // 2 of 4
  EXPECT_NEAR(losses.scribble.sum.item<double>(), 7 * std::log(2.0), 1e-12);
  EXPECT_EQ(losses.scribble.count.item<double>(), 2);
  const Tensor grad = torch::autograd::grad({losses.scribble.sum}, {logits})[0].select(1, 0).flatten();
  EXPECT_TRUE(grad.allclose(torch::tensor({0.0, 0.0, -7.0 / 8, -15.0 / 16, 0.0}, torch::kDouble)));
}

TEST(PixelLosses, DiceIsThatOfTheClassesThatArePresent) {
  // Of three classes, 0 and 1 are present in three labelled pixels.
  const Tensor p =
      torch::tensor({{0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}, {0.125, 0.75, 0.125}, {1.0, 0.0, 0.0}}, torch::kDouble);
  const Tensor logits = (p + 1e-300).log().t().contiguous().view({1, 3, 1, 4});
  const Tensor labels = torch::tensor({0, 1, 1, 255}, torch::kByte).view({1, 1, 4});
  const PixelLosses losses = pixel_losses(logits, {.labels = labels}, {.dice = true});
  const double first = 1 - 2 * 0.5 / (0.875 + 1), second = 1 - 2 * 1.25 / (1.5 + 2);
  EXPECT_NEAR(losses.dice.sum.item<double>(), first + second, 1e-6);
  EXPECT_EQ(losses.dice.count.item<double>(), 2);
}

TEST(PixelLosses, ChangeNoInput) {  // D13
  const Scene scene = random_scene();
  const Tensor logits = scene.logits.detach().clone(), labels = scene.labels.clone(), map = scene.map.clone();
  const PixelLosses all =
      pixel_losses(scene.logits, {.labels = scene.labels, .pseudo = scene.labels, .near_scribble = scene.map},
                   {.label_smoothing = 0.1, .mined_fraction = 0.5, .dice = true});
  (all.scribble.sum + all.pseudo.sum + all.entropy_s.sum + all.dice.sum).backward();
  EXPECT_TRUE(scene.logits.equal(logits) && scene.labels.equal(labels) && scene.map.equal(map));
}

TEST(PixelLosses, OfHalfPrecisionAreFloatUnderAutocast) {
  const Scene scene = random_scene();
  const PixelTargets targets{.labels = scene.labels, .near_scribble = scene.map};
  for (const auto type : {torch::kHalf, torch::kBFloat16}) {
    const Tensor logits = scene.logits.detach().to(type).requires_grad_();
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const PixelLosses half = pixel_losses(logits, targets);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    const PixelLosses exact = pixel_losses(logits.detach().to(torch::kDouble), targets);
    EXPECT_EQ(half.scribble.sum.scalar_type(), torch::kFloat);
    EXPECT_NEAR(half.scribble.sum.item<double>(), exact.scribble.sum.item<double>(), 1e-4);
    EXPECT_NEAR(half.entropy_s.sum.item<double>(), exact.entropy_s.sum.item<double>(), 1e-4);
    (half.scribble.sum + half.entropy_s.sum).backward();
    EXPECT_EQ(logits.grad().scalar_type(), type);
  }
}

}  // namespace
}  // namespace tandem
