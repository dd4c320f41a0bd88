#include "recipes/segment/losses.h"

#include <tandem/error.h>
#include <torch/types.h>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

struct WeightedTerm {
  const char* name = "";
  double weight = 0;
  SumAndCount value = {};
};

// A term with the labels that it needs.
struct Need {
  const char* flag;
  double weight;
  bool is_met;
  const char* missing;
  const char* hint;
};

}  // namespace

void validate(const LossOptions& o) {
  check_range("l-segs", o.l_segs, 0, kMostNumber);
  check_range("l-pseudo", o.l_pseudo, 0, kMostNumber);
  check_range("l-lorm", o.l_lorm, 0, kMostNumber);
  check_range("l-ds", o.l_ds, 0, kMostNumber);
  check_range("l-dc", o.l_dc, 0, kMostNumber);
  check_range("l-dice", o.l_dice, 0, kMostNumber);
  check_range("label-smooth", o.label_smooth, 0, 1);
  check_range("mined-fraction", o.mined_fraction, 0, 1);
  if (o.mined_fraction == 0) {
    fail(ErrorKind::Config, "mined-fraction is 0, which leaves no pixel", "give a fraction such as 0.25, or 1 for all");
  }
  for (const double weight : o.class_weights) check_range("class-weights", weight, 0, kMostNumber);
}

void check_losses(const LossOptions& o, const DataOptions& data, bool has_lorm) {
  const UsedPlanes used = used_planes(data.dataset);
  const char* other_dataset = "choose another --dataset, such as ScribblePseudoDsDc, or leave the term out";
  const Need needs[] = {
      {"l-segs", o.l_segs, used.labels, "labels", "use --l-segs 0 --l-pseudo 1, or another --dataset"},
      {"l-dice", o.l_dice, used.labels, "labels", other_dataset},
      {"l-pseudo", o.l_pseudo, used.pseudo, "pseudo labels", other_dataset},
      {"l-lorm", o.l_lorm, used.pseudo, "pseudo labels", other_dataset},
      {"l-ds", o.l_ds, used.near_scribble, "distance maps of scribbles", other_dataset},
      {"l-dc", o.l_dc, used.near_contour, "distance maps of contours", other_dataset},
      {"l-lorm", o.l_lorm, has_lorm, "LoRM module in --model-type",
       "use --model-type res50_ASPP_lorm or deeplabv3p_lorm"}};
  bool has_term = false;
  for (const Need& need : needs) {
    has_term = has_term || need.weight > 0;
    if (need.weight == 0 || need.is_met) continue;
    fail(ErrorKind::Config, str(need.flag, " is ", need.weight, ", but there are no ", need.missing), need.hint);
  }
  if (!has_term) fail(ErrorKind::Config, "every loss term has weight 0", "give one a weight, such as --l-segs 1");
}

void check_class_weights(const LossOptions& o, int num_classes) {
  if (o.class_weights.empty() || std::ssize(o.class_weights) == num_classes) return;
  fail(ErrorKind::Config, str("class-weights has ", o.class_weights.size(), " numbers for ", num_classes, " classes"),
       "give one for each class, in their order");
}

Loss segment_loss(const LossOptions& o, const DeeplabOutput& output, const PixelTargets& targets,
                  std::int64_t num_images) {
  const auto wanted = [](const Tensor& plane, double weight) { return weight > 0 ? plane : Tensor(); };
  const PixelTargets used = {.labels = o.l_segs > 0 || o.l_dice > 0 ? targets.labels : Tensor(),
                             .pseudo = wanted(targets.pseudo, o.l_pseudo),
                             .near_scribble = wanted(targets.near_scribble, o.l_ds),
                             .near_contour = wanted(targets.near_contour, o.l_dc)};
  const PixelLossOptions settings = {
      .label_smoothing = o.label_smooth,
      .class_weights = o.class_weights.empty() ? Tensor() : torch::tensor(o.class_weights, output.logits.device()),
      .mined_fraction = o.mined_fraction,
      .dice = o.l_dice > 0};
  const PixelLosses losses = pixel_losses(output.logits, used, settings);
  const WeightedTerm all[] = {{"l_segs", o.l_segs, losses.scribble}, {"l_pseudo", o.l_pseudo, losses.pseudo},
                              {"l_lorm", o.l_lorm, output.lorm},     {"l_ds", o.l_ds, losses.entropy_s},
                              {"l_dc", o.l_dc, losses.entropy_c},    {"l_dice", o.l_dice, losses.dice}};
  std::vector<LossTerm> terms;
  std::vector<Tensor> counts;
  for (const auto& [name, weight, value] : all) {
    if (weight == 0) continue;
    terms.push_back({.name = name, .sum = value.sum, .weight = weight, .min_count = 1});  // crops may have no label
    counts.push_back(value.count.to(torch::kDouble));
  }
  const Tensor host = torch::stack(counts).cpu();  // one synchronization with the device for all of them
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i].count = host[static_cast<std::int64_t>(i)].item<double>();
  return {std::move(terms), num_images};
}

}  // namespace tandem::segment
