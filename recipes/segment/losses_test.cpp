#include "recipes/segment/losses.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error_test.h"

namespace tandem::segment {
namespace {

using torch::Tensor;
namespace functional = torch::nn::functional;

struct Case {
  DeeplabOutput output;
  PixelTargets targets;
};

// Two images of 3 x 4 pixels and 3 classes; the labels have 6 pixels, the pseudo labels 20.
Case make_case() {
  torch::manual_seed(7);
  Case sample;
  sample.output.logits = torch::randn({2, 3, 3, 4}, torch::kDouble).requires_grad_();
  sample.targets.labels = torch::full({2, 3, 4}, 255, torch::kUInt8);
  sample.targets.labels.slice(1, 0, 1).slice(2, 0, 3).fill_(2);
  sample.targets.pseudo = torch::randint(0, 3, {2, 3, 4}, torch::kUInt8);
  sample.targets.pseudo.slice(1, 0, 1).slice(2, 2, 4).fill_(255);
  return sample;
}

double cross_entropy(const Case& sample, const Tensor& labels, double smoothing = 0) {
  const auto options = functional::CrossEntropyFuncOptions().ignore_index(255).label_smoothing(smoothing);
  return functional::cross_entropy(sample.output.logits, labels.to(torch::kLong), options).item<double>();
}

double value_of(const Loss& loss, const std::string& name) {
  for (const LossTerm& term : loss.terms) {
    if (term.name == name) return term.weight * term.sum.item<double>() / *term.count;
  }
  return NAN;
}

TEST(SegmentLoss, HasTheTermsThatHaveAWeight) {
  const Case sample = make_case();
  const Loss loss =
      segment_loss({.l_segs = 2, .l_pseudo = 0.5, .label_smooth = 0.1}, sample.output, sample.targets, {}, 2);
  ASSERT_EQ(loss.terms.size(), 2U);
  EXPECT_EQ(loss.terms[0].count, 6);
  EXPECT_EQ(loss.terms[1].count, 20);
  EXPECT_EQ(loss.work, 2) << "images";
  EXPECT_NEAR(value_of(loss, "l_segs"), 2 * cross_entropy(sample, sample.targets.labels), 1e-12);
  EXPECT_NEAR(value_of(loss, "l_pseudo"), 0.5 * cross_entropy(sample, sample.targets.pseudo, 0.1), 1e-12);
}

// What the data tell beforehand is what the loss counts on the device.
TEST(SegmentLoss, HasCountsThatAreKnownBeforehand) {
  Case sample = make_case();
  sample.targets.near_scribble = torch::arange(24, torch::kUInt8).view({2, 3, 4});
  sample.targets.near_contour = torch::zeros({2, 3, 4}, torch::kUInt8);
  LossOptions options = {.l_segs = 1, .l_pseudo = 1, .l_ds = 1, .l_dc = 1, .l_dice = 1};
  for (const std::vector<double>& weights : {std::vector<double>(), {0.5, 1, 0.25}}) {
    options.class_weights = weights;
    const std::vector<KnownCount> known = known_counts(options, sample.targets);
    const Loss loss = segment_loss(options, sample.output, sample.targets, {}, 2);
    ASSERT_EQ(known.size(), 5U);
    for (std::size_t i = 0; i < known.size(); ++i) {
      EXPECT_EQ(known[i].term, loss.terms[i].name);
      EXPECT_NEAR(known[i].count, *loss.terms[i].count, 1e-12) << known[i].term;
    }
    EXPECT_EQ(known[2].count, 23);
    EXPECT_EQ(known[4].count, 1) << "the labels have one class";
  }
  options.mined_fraction = 0.5;
  EXPECT_EQ(known_counts(options, sample.targets).front().term, "l_ds") << "mining looks at the losses";
}

// As torch's cross-entropy, whose value does not depend on the scale of the weights.
TEST(SegmentLoss, DoesNotDependOnTheScaleOfClassWeights) {
  const Case sample = make_case();
  const auto value_with = [&](double scale) {
    const LossOptions options{.class_weights = {0.2 * scale, 1 * scale, 0.7 * scale}};
    const LossTerm term = segment_loss(options, sample.output, sample.targets, {}, 2).terms.front();
    return term.sum.item<double>() / std::max(*term.count, term.min_count);
  };
  EXPECT_NEAR(value_with(1e-4), value_with(1), 1e-6);
}

// The guide's pseudo labels count only with --label_smooth, and then with the weight of the scribbles.
TEST(D12, TheWeightOfPseudoLabelsIsTheirWeight) {
  const Case sample = make_case();
  const Loss loss = segment_loss({.l_segs = 1, .l_pseudo = 3}, sample.output, sample.targets, {}, 2);
  EXPECT_NEAR(value_of(loss, "l_pseudo"), 3 * cross_entropy(sample, sample.targets.pseudo), 1e-12);
}

// LoRM of the guide turns ignored pixels of the pseudo labels into background before their cross-entropy is computed.
TEST(D13, NoPlaneIsChanged) {
  Case sample = make_case();
  sample.targets.near_scribble = torch::full({2, 3, 4}, 200, torch::kUInt8);
  sample.targets.near_contour = torch::full({2, 3, 4}, 100, torch::kUInt8);
  const auto planes = [&] {
    return torch::stack(
        {sample.targets.labels, sample.targets.pseudo, sample.targets.near_scribble, sample.targets.near_contour});
  };
  const Tensor before = planes();
  Deeplab net(DeeplabOptions{.classes = 3, .trunk = {.layers = 14, .width = 4}});
  sample.output = net(torch::randn({2, 3, 33, 33}), sample.targets.pseudo);
  sample.output.logits = torch::randn({2, 3, 3, 4}).requires_grad_();
  const LossOptions all = {.l_segs = 1, .l_pseudo = 1, .l_lorm = 1, .l_ds = 1, .l_dc = 1, .l_dice = 1};
  EXPECT_EQ(segment_loss(all, sample.output, sample.targets, {}, 2).terms.size(), 6U);
  EXPECT_TRUE(torch::equal(planes(), before));
}

TEST(SegmentLoss, LeavesPlanesUnusedWhoseTermsHaveNoWeight) {
  const auto unused = [](const LossOptions& loss, Supervision dataset) {
    DataOptions data;
    data.dataset = dataset;
    return unused_planes(loss, data);
  };
  EXPECT_EQ(
      unused({}, Supervision::ScribblePseudoDsDc),
      "pseudo labels (--l-pseudo, --l-lorm), scribble distance maps (--l-ds), pseudo-label distance maps (--l-dc)");
  EXPECT_EQ(unused({.l_lorm = 1, .l_dc = 1}, Supervision::ScribblePseudoDsDc), "scribble distance maps (--l-ds)");
  EXPECT_EQ(unused({.l_pseudo = 1}, Supervision::ScribblePseudo), "");
  EXPECT_EQ(unused({}, Supervision::ScribbleOnly), "");
  EXPECT_EQ(unused({}, Supervision::PseudoOnly), "");
}

TEST(SegmentLoss, OfATermWithoutItsLabelsIsAnError) {
  const auto error_with = [](const LossOptions& loss, Supervision dataset, bool has_lorm = true) {
    DataOptions data;
    data.dataset = dataset;
    return error_of([&] { check_losses(loss, data, has_lorm); });
  };
  EXPECT_NE(error_with({.l_pseudo = 1}, Supervision::ScribbleOnly).message().find("l-pseudo"), std::string::npos);
  EXPECT_EQ(error_with({.l_segs = 1}, Supervision::PseudoOnly).message(), "") << "as in the guide: they are the labels";
  EXPECT_NE(error_with({.l_ds = 1}, Supervision::ScribblePseudoDc).message().find("l-ds"), std::string::npos);
  EXPECT_NE(error_with({.l_dc = 1}, Supervision::ScribblePseudoDs).message().find("l-dc"), std::string::npos);
  EXPECT_NE(error_with({.l_lorm = 1}, Supervision::ScribblePseudo, false).hint().find("res50_ASPP_lorm"),
            std::string::npos);
  EXPECT_EQ(error_with({.l_segs = 0}, Supervision::ScribbleOnly).kind(), ErrorKind::Config);
}

}  // namespace
}  // namespace tandem::segment
