#include "recipes/segment/losses.h"

#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "base/check_range.h"
#include "base/text.h"
#include "models/deeplab/soft_target.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

struct WeightedTerm {
  const char* name = "";
  double weight = 0;
  SumAndCount value = {};
  double min_count = 1;
};

// How often each value occurs in a plane of bytes.
class ByteCounts {
 public:
  explicit ByteCounts(const Tensor& plane) : counts_(at::bincount(plane.flatten(), {}, kValues)) {}

  double operator[](std::int64_t value) const {
    return static_cast<double>(counts_.const_data_ptr<std::int64_t>()[value]);
  }
  double total() const { return static_cast<double>(counts_.sum().item<std::int64_t>()); }

  // Of labels: the sum of the class weights, which are 1 if there are none.
  double weighted(std::span<const double> class_weights) const {
    double sum = 0;
    for (std::int64_t label = 0; label < kUnlabelled; ++label) {
      const auto index = static_cast<std::size_t>(label);
      if ((*this)[label] > 0) sum += (*this)[label] * (class_weights.empty() ? 1 : class_weights[index]);
    }
    return sum;
  }
  double num_classes() const {
    return static_cast<double>(counts_.narrow(0, 0, kUnlabelled).count_nonzero().item<std::int64_t>());
  }

 private:
  static constexpr std::int64_t kValues = 256;
  Tensor counts_;
};

// The smallest count of a cross-entropy that has a pixel.
double lightest_pixel(const LossOptions& o) {
  double least = 1;
  for (const double weight : o.class_weights) {
    if (weight > 0) least = std::min(least, weight);
  }
  return least;
}

// Of the terms without one; one synchronization with the device for all of them.
void fill_counts(std::vector<LossTerm>& terms, const std::vector<Tensor>& counts) {
  if (counts.empty()) return;
  const Tensor host = torch::stack(counts).cpu();
  const double* next = host.const_data_ptr<double>();
  for (LossTerm& term : terms) {
    if (!term.count) term.count = *next++;
  }
}

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
  const Need needs[] = {{"l-segs", o.l_segs, true, "labels", other_dataset},
                        {"l-dice", o.l_dice, true, "labels", other_dataset},
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

std::string unused_planes(const LossOptions& o, const DataOptions& data) {
  const UsedPlanes used = used_planes(data.dataset);
  std::vector<std::string> unused;
  if (used.pseudo && used.own_labels && o.l_pseudo == 0 && o.l_lorm == 0) {
    unused.emplace_back("pseudo labels (--l-pseudo, --l-lorm)");
  }
  if (used.near_scribble && o.l_ds == 0) unused.emplace_back("scribble distance maps (--l-ds)");
  if (used.near_contour && o.l_dc == 0) unused.emplace_back("pseudo-label distance maps (--l-dc)");
  return join(unused, ", ");
}

void check_class_weights(const LossOptions& o, int num_classes) {
  if (o.class_weights.empty() || std::ssize(o.class_weights) == num_classes) return;
  fail(ErrorKind::Config, str("class-weights has ", o.class_weights.size(), " numbers for ", num_classes, " classes"),
       "give one for each class, in their order");
}

std::vector<KnownCount> known_counts(const LossOptions& o, const PixelTargets& targets) {
  std::vector<KnownCount> known;
  const auto add = [&](const char* name, double weight, const Tensor& plane, const auto& count_of) {
    if (weight > 0 && plane.defined()) known.push_back({.term = name, .count = count_of(ByteCounts(plane))});
  };
  const auto weighted = [&](const ByteCounts& labels) { return labels.weighted(o.class_weights); };
  const auto above_0 = [](const ByteCounts& map) { return map.total() - map[0]; };
  const auto classes = [](const ByteCounts& labels) { return labels.num_classes(); };
  const bool mines = o.mined_fraction < 1;
  add("l_segs", mines ? 0 : o.l_segs, targets.labels, weighted);
  add("l_pseudo", mines ? 0 : o.l_pseudo, targets.pseudo, weighted);
  add("l_ds", o.l_ds, targets.near_scribble, above_0);
  add("l_dc", o.l_dc, targets.near_contour, above_0);
  add("l_dice", o.l_dice, targets.labels, classes);
  return known;
}

Loss segment_loss(const LossOptions& o, const DeeplabOutput& output, const PixelTargets& targets,
                  std::span<const KnownCount> known, std::int64_t num_images) {
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
  const double pixel = lightest_pixel(o);
  const WeightedTerm all[] = {{"l_segs", o.l_segs, losses.scribble, pixel},
                              {"l_pseudo", o.l_pseudo, losses.pseudo, pixel},
                              {"l_lorm", o.l_lorm, output.lorm},
                              {"l_ds", o.l_ds, losses.entropy_s},
                              {"l_dc", o.l_dc, losses.entropy_c},
                              {"l_dice", o.l_dice, losses.dice}};
  std::vector<LossTerm> terms;
  std::vector<Tensor> unknown;
  for (const auto& [name, weight, value, least] : all) {
    if (weight == 0) continue;
    const auto count = std::ranges::find(known, name, &KnownCount::term);
    terms.push_back({.name = name, .sum = value.sum, .weight = weight, .min_count = least});  // crops may have no label
    if (count != known.end()) {
      terms.back().count = count->count;
    } else {
      unknown.push_back(value.count.to(torch::kDouble));
    }
  }
  fill_counts(terms, unknown);
  return {std::move(terms), num_images};
}

}  // namespace tandem::segment
