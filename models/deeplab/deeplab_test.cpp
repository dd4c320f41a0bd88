#include "models/deeplab/deeplab.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;

std::int64_t num_parameters(const torch::nn::Module& module, const std::string& prefix) {
  std::int64_t count = 0;
  for (const auto& item : module.named_parameters()) {
    if (item.key().starts_with(prefix)) count += item.value().numel();
  }
  return count;
}

DeeplabOptions small(SegmentHead head) { return {.classes = 5, .head = head, .trunk = {.layers = 14, .width = 8}}; }

std::vector<std::int64_t> dilations(const ResnetOptions& options, int stage) {
  std::vector<std::int64_t> found;
  for (const BlockOptions& block : resnet_stages(options)[stage]) found.push_back(block.dilation);
  return found;
}

TEST(Deeplab, HasTheParametersOfTheGuide) {
  const Deeplab model(DeeplabOptions{});
  EXPECT_EQ(num_parameters(*model, "backbone."), 23'508'032);
  EXPECT_EQ(num_parameters(*model, "classifier."), 1'249'689);
  EXPECT_EQ(num_parameters(*model, "lorm."), 8'392'705);
  EXPECT_EQ(num_parameters(*model, ""), 33'150'426);
}

TEST(Deeplab, DilatesBeyondTheOutputStride) {
  using Dilations = std::vector<std::int64_t>;
  EXPECT_EQ(dilations({}, 1), (Dilations{1, 1, 1, 1}));
  EXPECT_EQ(dilations({}, 2), (Dilations{2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(dilations({}, 3), (Dilations{4, 8, 16}));
  EXPECT_EQ(dilations({.output_stride = 16}, 2), (Dilations{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(dilations({.output_stride = 16}, 3), (Dilations{2, 4, 8}));
  EXPECT_EQ(dilations({.output_stride = 32}, 3), (Dilations{1, 1, 1}));
  const ResnetOptions torchvision{.stride_in = StrideIn::Second, .multi_grid = false};
  EXPECT_EQ(dilations(torchvision, 2), (Dilations{1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(dilations(torchvision, 3), (Dilations{2, 4, 4}));
}

TEST(Deeplab, HasFeaturesOfTheOutputStride) {
  for (const std::int64_t layers : {14, 18, 34, 50, 101, 152}) {
    Resnet trunk(ResnetOptions{.layers = layers, .width = 4});
    const ResnetFeatures features = trunk(torch::randn({2, 3, 65, 65}));
    EXPECT_EQ(features.low.size(2), 17);
    EXPECT_EQ(features.high.sizes(), (at::IntArrayRef{2, layers == 18 || layers == 34 ? 32 : 128, 9, 9}));
    EXPECT_EQ(features.high.size(1), trunk->high_channels());
  }
  Resnet sixteen(ResnetOptions{.layers = 14, .width = 4, .output_stride = 16});
  EXPECT_EQ(sixteen(torch::randn({2, 3, 65, 65})).high.size(2), 5);
  // The max-pool of the guide rounds up, that of torchvision down.
  Resnet guide(ResnetOptions{.layers = 14, .width = 4});
  EXPECT_EQ(guide(torch::randn({2, 3, 64, 64})).low.size(2), 17);
  Resnet torchvision(ResnetOptions{.layers = 14, .width = 4, .stride_in = StrideIn::Second});
  EXPECT_EQ(torchvision(torch::randn({2, 3, 64, 64})).low.size(2), 16);
}

TEST(Deeplab, HasLogitsOfTheSizeOfTheImagesInTheirLayout) {
  for (const auto head :
       {SegmentHead::AsppToClasses, SegmentHead::DeeplabV3, SegmentHead::DeeplabV3Plus, SegmentHead::DilatedSum}) {
    torch::manual_seed(3);
    Deeplab model(small(head));
    model->eval();
    const Tensor images = torch::randn({2, 3, 33, 41});
    const Tensor plain = model->forward(images).logits;
    EXPECT_EQ(plain.sizes(), (at::IntArrayRef{2, 5, 33, 41}));
    to_channels_last(*model);
    const Tensor last = model->forward(images.contiguous(at::MemoryFormat::ChannelsLast)).logits;
    EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(last.allclose(plain, 1e-4, 1e-5));
  }
}

TEST(Deeplab, KeepsChannelsLastThroughTheTrunkAndInItsGradients) {
  const auto format = at::MemoryFormat::ChannelsLast;
  Deeplab model(small(SegmentHead::AsppToClasses));
  to_channels_last(*model);
  const DeeplabOutput output =
      model->forward(torch::randn({2, 3, 33, 33}).contiguous(format), torch::ones({2, 33, 33}, torch::kByte));
  (output.logits.sum() + output.lorm.sum).backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().dim() != 4 || item.value().grad().is_contiguous(format)) << item.key();
  }
  Resnet trunk(small(SegmentHead::AsppToClasses).trunk);
  to_channels_last(*trunk);
  const ResnetFeatures features = trunk(torch::randn({2, 3, 33, 33}).contiguous(format));
  EXPECT_TRUE(features.low.is_contiguous(format) && features.high.is_contiguous(format));
}

TEST(Deeplab, HasTheGradientsOfThePlainModelWhenItRecomputes) {
  torch::manual_seed(3);
  Deeplab model(small(SegmentHead::AsppToClasses));
  const Tensor images = torch::randn({2, 3, 33, 33});
  std::vector<Tensor> grads;
  for (const bool wanted : {false, true}) {
    model->zero_grad();
    model->set_recompute(wanted);
    model->forward(images).logits.square().sum().backward();
    grads.push_back(model->named_parameters()["backbone.layer1.0.conv1.weight"].grad().clone());
  }
  EXPECT_TRUE(grads[0].equal(grads[1]));
}

TEST(Deeplab, CountsTheFlopsOfItsConvolutions) {
  // torchvision's ResNet-50 has 4.09 GFLOPs (multiply-adds) for 224 x 224, 2.05 M of them in its classifier; 3.4 % of
  // them are with padding (counted by torch.conv2d of ones with kernels of ones).
  Resnet trunk(ResnetOptions{.stride_in = StrideIn::Second, .output_stride = 32});
  const torch::NoGradGuard no_grad;
  trunk(torch::zeros({1, 3, 224, 224}));
  EXPECT_EQ(conv_flops(*trunk) / 2, 3'946'203'904);
}

TEST(Deeplab, RefusesTheLormLossWithoutLorm) {
  DeeplabOptions options = small(SegmentHead::DilatedSum);
  options.lorm = false;
  Deeplab model(options);
  const Error error = error_of([&] { model->forward(torch::zeros({2, 3, 33, 33}), torch::zeros({2, 33, 33})); });
  EXPECT_TRUE(says(error.message(), {"LoRM"}));
}

TEST(DeeplabOptions, AreReadAsTheyAreWritten) {
  const DeeplabOptions options{
      .classes = 7,
      .head = SegmentHead::DeeplabV3Plus,
      .lorm = false,
      .trunk = {.layers = 18, .width = 16, .stride_in = StrideIn::Second, .output_stride = 16, .multi_grid = false},
      .dropout = 0.25};
  EXPECT_EQ(read_deeplab_json(deeplab_json(options), "model.json"), options);
}

TEST(DeeplabOptions, RefuseWhatIsNotThere) {
  EXPECT_TRUE(says(error_of([] { validate(DeeplabOptions{.trunk = {.layers = 51}}); }).message(), {"51"}));
  EXPECT_TRUE(says(error_of([] { validate(DeeplabOptions{.classes = 256}); }).message(), {"256"}));
  EXPECT_TRUE(says(error_of([] { validate(ResnetOptions{.output_stride = 4}); }).message(), {"output-stride", "4"}));
  std::string text = deeplab_json(DeeplabOptions{});
  text.replace(text.find("\"aspp\""), 6, "\"fpn\"");
  EXPECT_TRUE(says(error_of([&] { read_deeplab_json(text, "m.json"); }).message(), {"m.json", "fpn"}));
}

}  // namespace
}  // namespace tandem
