#include "models/deeplab/pixel_losses.h"

#include <ATen/OpMathType.h>
#include <tandem/error.h>
#include <torch/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/no_autocast.h"
#include "models/deeplab/soft_target.h"

namespace tandem {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kElementsAtATime = std::int64_t{1} << 24;
constexpr double kMostWeight = 255;  // of an entropy map

// Pairs: of labels and pseudo labels, or of the two maps.
using Pair = std::array<Tensor, 2>;

bool has_any(const Pair& pair) { return pair[0].defined() || pair[1].defined(); }

// Calls `body` with the range of some images at a time.
template <class Body>
void for_images(const Tensor& logits, const Body& body) {
  const std::int64_t size = std::max<std::int64_t>(1, logits[0].numel());
  const std::int64_t images = std::max<std::int64_t>(1, kElementsAtATime / size);
  for (std::int64_t begin = 0; begin < logits.size(0); begin += images) {
    body([&, begin, count = std::min(images, logits.size(0) - begin)](const Tensor& tensor) {
      return tensor.narrow(0, begin, count);
    });
  }
}

Tensor negative_entropy(const Tensor& log_probabilities, std::int64_t dim) {
  return log_probabilities.exp().mul_(log_probabilities).sum(dim);
}

// Where the loss, which is 0 without a label, is among the highest of the labelled pixels.
Tensor hardest(const Tensor& losses, const Tensor& is_labelled, double fraction) {
  const Tensor sorted = std::get<0>(losses.flatten().sort(0, /*descending=*/true));
  const Tensor last = (is_labelled.sum() * fraction).ceil().to(torch::kLong).sub_(1).clamp_min_(0);
  return (losses >= sorted.index_select(0, last.view(1))).logical_and_(is_labelled);
}

struct PixelSettings {
  Tensor class_weights;
  std::array<double, 2> smoothing = {};
  double mined_fraction = 1;
};

// One number per pixel.
struct PixelValues {
  Pair losses;       // cross-entropies
  Tensor entropies;  // negative; undefined if there is no map
};

PixelValues pixel_values(const Tensor& logits, const Pair& labels, bool needs_entropy, const PixelSettings& settings) {
  const auto type = at::toOpMathType(logits.scalar_type());
  const Classified all(logits);
  const auto plane = [&] {
    return torch::empty({logits.size(0), logits.size(2), logits.size(3)}, logits.options().dtype(type));
  };
  PixelValues values;
  for (int i = 0; i < 2; ++i) values.losses[i] = labels[i].defined() ? plane() : Tensor();
  if (needs_entropy) values.entropies = plane();
  for_images(logits, [&](const auto& part) {
    const Tensor log_p = part(all.values).log_softmax(all.dim, type);
    for (int i = 0; i < 2; ++i) {
      if (!labels[i].defined()) continue;
      const SoftTarget target(part(labels[i]), settings.class_weights, settings.smoothing[i], all, type);
      part(values.losses[i]).copy_(target.loss(log_p));
    }
    if (needs_entropy) part(values.entropies).copy_(negative_entropy(log_p, all.dim));
  });
  return values;
}

// The four terms.
struct PixelTotals {
  Tensor sums;
  Tensor counts;
  Pair kept;  // pixels, if some are mined away
};

PixelTotals pixel_totals(const PixelValues& values, const Pair& labels, const Pair& maps, const PixelSettings& settings,
                         const Tensor& zero) {
  const Tensor none = zero.to(torch::kDouble);
  std::array<Tensor, 4> sums = {zero, zero, zero, zero}, counts = {none, none, none, none};
  PixelTotals totals;
  for (int i = 0; i < 2; ++i) {
    if (labels[i].defined()) {
      Tensor losses = values.losses[i];
      Tensor weights = label_weights(labels[i], settings.class_weights, losses.scalar_type());
      if (settings.mined_fraction < 1) {
        totals.kept[i] = hardest(losses, labels[i] != kUnlabelled, settings.mined_fraction);
        losses = losses * totals.kept[i];
        weights.mul_(totals.kept[i]);
      }
      sums[i] = losses.sum();
      counts[i] = weights.sum(torch::kDouble);
    }
    if (maps[i].defined()) {
      sums[2 + i] = (values.entropies * maps[i]).sum() / -kMostWeight;
      counts[2 + i] = (maps[i] > 0).sum().to(torch::kDouble);
    }
  }
  totals.sums = torch::stack(sums);
  totals.counts = torch::stack(counts);
  return totals;
}

// What the backward pass needs of the forward pass.
struct PixelSaved {
  explicit PixelSaved(AutogradContext& context) {
    const variable_list saved = context.get_saved_variables();
    logits = saved[0];
    class_weights = saved[1];
    labels = {saved[2], saved[3]};
    maps = {saved[4], saved[5]};
    kept = {saved[6], saved[7]};
    smoothing = {0, context.saved_data["smoothing"].toDouble()};
  }

  Tensor logits, class_weights;
  Pair labels, maps, kept;
  std::array<double, 2> smoothing = {};
};

// The gradient of the entropies of some images by the logits, divided by P; `sum_grads` is that of the four sums.
template <class Part>
Tensor entropy_gradient(const PixelSaved& saved, const Part& part, const Tensor& log_p, std::int64_t dim,
                        const Tensor& sum_grads) {
  if (!has_any(saved.maps)) return torch::zeros_like(log_p);
  Tensor slope;  // per pixel
  for (int i = 0; i < 2; ++i) {
    if (!saved.maps[i].defined()) continue;
    const Tensor one = part(saved.maps[i]) * (sum_grads[2 + i] / kMostWeight);
    slope = slope.defined() ? slope + one : one;
  }
  return (negative_entropy(log_p, dim).unsqueeze(dim) - log_p).mul_(slope.unsqueeze(dim));
}

class PixelLossSums : public torch::autograd::Function<PixelLossSums> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& logits, const Pair& labels, const Pair& maps,
                               const PixelSettings& settings) {
    const NoAutocast plain(logits.device().type());
    const PixelValues values = pixel_values(logits, labels, has_any(maps), settings);
    const Tensor zero = torch::zeros({}, logits.options().dtype(at::toOpMathType(logits.scalar_type())));
    const PixelTotals totals = pixel_totals(values, labels, maps, settings, zero);
    context->save_for_backward(
        {logits, settings.class_weights, labels[0], labels[1], maps[0], maps[1], totals.kept[0], totals.kept[1]});
    context->saved_data["smoothing"] = settings.smoothing[1];
    context->mark_non_differentiable({totals.counts});
    return {totals.sums, totals.counts};
  }

  // With log-probabilities l, probabilities P and negative entropy N = sum P l, the gradient of a cross-entropy is
  // P * (total weight) - weights, that of an entropy P * (N - l).
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (torch::GradMode::is_enabled()) {
      fail(ErrorKind::Config, "pixel_losses: double backward (create_graph) is not supported",
           "differentiate the losses once");
    }
    const PixelSaved saved(*context);
    const NoAutocast plain(saved.logits.device().type());
    const auto type = at::toOpMathType(saved.logits.scalar_type());
    const Classified all(saved.logits);
    const Tensor result = torch::empty_like(saved.logits);
    const Classified result_rows(result);
    for_images(saved.logits, [&](const auto& part) {
      const Tensor log_p = part(all.values).log_softmax(all.dim, type);
      Tensor grad = entropy_gradient(saved, part, log_p, all.dim, grads[0]);
      std::vector<std::pair<SoftTarget, Tensor>> targets;  // with the slope of each pixel
      for (int i = 0; i < 2; ++i) {
        if (!saved.labels[i].defined()) continue;
        SoftTarget target(part(saved.labels[i]), saved.class_weights, saved.smoothing[i], all, type);
        const Tensor slope = saved.kept[i].defined() ? part(saved.kept[i]) * grads[0][i] : grads[0][i];
        grad.add_((target.total() * slope).unsqueeze_(all.dim));
        targets.emplace_back(std::move(target), slope);
      }
      grad.mul_(log_p.exp());
      for (const auto& [target, slope] : targets) target.subtract_from(grad, slope);
      part(result_rows.values).copy_(grad);
    });
    return {result, Tensor(), Tensor(), Tensor()};
  }
};

SumAndCount dice_of(const Tensor& logits, const Tensor& labels) {
  constexpr double kEpsilon = 1e-6;
  const NoAutocast plain(logits.device().type());
  const auto type = at::toOpMathType(logits.scalar_type());
  const Tensor is_labelled = (labels != kUnlabelled).unsqueeze(1);
  const Tensor classes = torch::arange(logits.size(1), labels.options().dtype(torch::kLong)).view({1, -1, 1, 1});
  const Tensor truth = labels.unsqueeze(1) == classes;
  const Tensor p = logits.softmax(1, type);
  const Tensor both = (p * truth).sum({0, 2, 3});
  const Tensor found = (p * is_labelled).sum({0, 2, 3});
  const Tensor size = truth.sum({0, 2, 3}).to(type);
  const Tensor is_present = size > 0;
  const Tensor loss = 1 - (2 * both + kEpsilon) / (found + size + kEpsilon);
  return {(loss * is_present).sum(), is_present.sum().to(torch::kDouble)};
}

}  // namespace

PixelLosses pixel_losses(const Tensor& logits, const PixelTargets& targets, const PixelLossOptions& options) {
  const Pair labels = {targets.labels, targets.pseudo}, maps = {targets.near_scribble, targets.near_contour};
  PixelLosses losses;
  if (has_any(labels) || has_any(maps)) {
    const PixelSettings settings{options.class_weights, {0, options.label_smoothing}, options.mined_fraction};
    const variable_list result = PixelLossSums::apply(logits, labels, maps, settings);
    const auto term = [&](const Tensor& target, int i) {
      return target.defined() ? SumAndCount{result[0][i], result[1][i]} : SumAndCount{};
    };
    losses = {.scribble = term(labels[0], 0),
              .pseudo = term(labels[1], 1),
              .entropy_s = term(maps[0], 2),
              .entropy_c = term(maps[1], 3)};
  }
  if (options.dice && targets.labels.defined()) losses.dice = dice_of(logits, targets.labels);
  return losses;
}

}  // namespace tandem
