#include "models/deeplab/weights.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem {
namespace {

using torch::Tensor;
using Weights = std::map<std::string, Tensor>;

DeeplabOptions tiny(SegmentHead head, std::int64_t classes, std::int64_t layers = 14) {
  return {.classes = classes, .head = head, .trunk = {.layers = layers, .width = 4}};
}

// As a classifier of torchvision or timm, in a file that DistributedDataParallel may have made.
Weights classifier_file(const Deeplab& model, const std::string& prefix) {
  Weights file = {{prefix + "fc.weight", torch::zeros({10, 128})}, {prefix + "fc.bias", torch::zeros(10)}};
  for (const auto& [name, tensor] : torchvision_weights(model)) {
    if (name.starts_with("backbone.")) file[prefix + name.substr(9)] = tensor;
  }
  return file;
}

bool all_start_with(const std::vector<std::string>& names, const std::string& prefix) {
  return std::all_of(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); });
}

TEST(DeeplabWeights, HaveTheNamesOfTorchvision) {
  const auto weights = torchvision_weights(Deeplab(tiny(SegmentHead::DeeplabV3, 3)));
  for (const char* name :
       {"backbone.conv1.weight", "backbone.bn1.running_mean", "backbone.bn1.num_batches_tracked",
        "backbone.layer1.0.downsample.1.running_var", "backbone.layer4.0.conv3.weight", "classifier.0.convs.0.0.weight",
        "classifier.0.convs.3.1.bias", "classifier.0.convs.4.1.weight", "classifier.0.convs.4.2.running_mean",
        "classifier.0.project.1.weight", "classifier.1.weight", "classifier.2.bias", "classifier.4.bias"}) {
    EXPECT_TRUE(weights.contains(name)) << name;
  }
  EXPECT_FALSE(weights.contains("lorm.gamma"));
}

TEST(DeeplabWeights, TakeTheTrunkOfAClassifier) {
  const Deeplab model(tiny(SegmentHead::AsppToClasses, 3)), other(tiny(SegmentHead::AsppToClasses, 3));
  for (const std::string prefix : {"", "module."}) {
    const auto found = pretrained_weights(model, classifier_file(other, prefix), "file");
    EXPECT_EQ(found.left_out, (std::vector<std::string>{prefix + "fc.bias", prefix + "fc.weight"}));
    EXPECT_TRUE(found.weights.at("backbone.layer2.0.conv2.weight")
                    .equal(other->named_parameters()["backbone.layer2.0.conv2.weight"]));
    EXPECT_TRUE(std::any_of(found.missing.begin(), found.missing.end(),
                            [](const auto& name) { return name == "classifier.0.project.0.weight"; }));
  }
}

TEST(DeeplabWeights, OfAFileHaveAHeadOfAKindAndItsClasses) {
  const Deeplab model(tiny(SegmentHead::AsppToClasses, 3));
  for (const auto& [name, kind] : enum_names(SegmentHead())) {
    const auto found = pretrained_weights(model, torchvision_weights(Deeplab(tiny(kind, 5))), "file");
    ASSERT_TRUE(found.head.has_value()) << name;
    EXPECT_EQ(found.head->kind, kind) << name;
    EXPECT_EQ(found.head->classes, 5) << name;
  }
  // The ASPP of one has the shapes of that of the other, and other dilations.
  const Deeplab v3(tiny(SegmentHead::DeeplabV3, 3)), plus(tiny(SegmentHead::DeeplabV3Plus, 3));
  for (const auto& [name, tensor] : pretrained_weights(v3, torchvision_weights(plus), "file").weights) {
    EXPECT_FALSE(name.starts_with("classifier.")) << name;
  }
  EXPECT_FALSE(pretrained_weights(model, classifier_file(model, ""), "file").head.has_value());
}

TEST(DeeplabWeights, LeaveOutAHeadWithOtherClasses) {
  const Deeplab model(tiny(SegmentHead::AsppToClasses, 3)), other(tiny(SegmentHead::AsppToClasses, 5));
  const auto found = pretrained_weights(model, torchvision_weights(other), "file");
  EXPECT_FALSE(found.left_out.empty());
  EXPECT_TRUE(all_start_with(found.left_out, "classifier.0."));
  const Deeplab plus(tiny(SegmentHead::DeeplabV3Plus, 3)), other_plus(tiny(SegmentHead::DeeplabV3Plus, 5));
  const auto found_plus = pretrained_weights(plus, torchvision_weights(other_plus), "file");
  EXPECT_EQ(found_plus.left_out, (std::vector<std::string>{"classifier.last.bias", "classifier.last.weight"}));
  EXPECT_EQ(found_plus.missing,
            (std::vector<std::string>{"classifier.last.bias", "classifier.last.weight", "lorm.gamma", "lorm.key.bias",
                                      "lorm.key.weight", "lorm.query.bias", "lorm.query.weight"}));
}

TEST(DeeplabWeights, OfAnotherTrunkAreAnError) {
  const Deeplab model(tiny(SegmentHead::AsppToClasses, 3));
  const Deeplab deeper(tiny(SegmentHead::AsppToClasses, 3, 50));
  const Error more = error_of([&] { pretrained_weights(model, torchvision_weights(deeper), "r50.safetensors"); });
  EXPECT_EQ(more.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(
      says(more.message(), {"r50.safetensors has a ResNet-50 of width 4", "this model a ResNet-14 of width 4"}));
  EXPECT_TRUE(says(more.hint(), {"--layers 50"}));
  EXPECT_FALSE(says(more.hint(), {"--width"}));
  const Deeplab basic(DeeplabOptions{.classes = 3, .trunk = {.layers = 18, .width = 8}});
  const Error fewer = error_of([&] { pretrained_weights(deeper, torchvision_weights(basic), "file"); });
  EXPECT_TRUE(says(fewer.hint(), {"--layers 18 --width 8"}));
  const Error none = error_of([&] { pretrained_weights(deeper, {{"wte.weight", torch::zeros({2, 2})}}, "file"); });
  EXPECT_TRUE(says(none.message(), {"file has no ResNet", "conv1.weight"}));
}

TEST(DeeplabWeights, OfATrunkThatIsNotAPlainResnetAreAnError) {
  const Deeplab model(tiny(SegmentHead::AsppToClasses, 3));
  auto grouped = classifier_file(model, "");
  grouped["layer1.0.conv2.weight"] = torch::zeros({4, 2, 3, 3});
  const Error wrong = error_of([&] { pretrained_weights(model, grouped, "file"); });
  EXPECT_TRUE(says(wrong.message(), {"layer1.0.conv2.weight is [4, 2, 3, 3] instead of [4, 4, 3, 3]"}));
  EXPECT_TRUE(says(wrong.hint(), {"ResNeXt"}));
  auto broken = classifier_file(model, "");
  broken.erase("layer1.0.bn1.bias");
  const Error missing = error_of([&] { pretrained_weights(model, broken, "file"); });
  EXPECT_TRUE(says(missing.message(), {"backbone.layer1.0.bn1.bias is missing"}));
}

}  // namespace
}  // namespace tandem
