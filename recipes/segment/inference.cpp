#include "recipes/segment/inference.h"

#include <tandem/error.h>

#include <algorithm>
#include <cmath>

#include "base/check_range.h"
#include "recipes/segment/batch.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

Tensor resize_to(const Tensor& map, std::int64_t height, std::int64_t width) {
  if (map.size(2) == height && map.size(3) == width) return map;
  return at::upsample_bilinear2d(map, {height, width}, /*align_corners=*/true);
}

Tensor probabilities(Deeplab& net, const Tensor& x) { return net(x).logits.softmax(1, torch::kFloat); }

// Where windows of that side begin along a length: steps of 2/3 of the side, the last one at the end.
std::vector<std::int64_t> window_starts(std::int64_t length, std::int64_t side) {
  const std::int64_t stride = std::max<std::int64_t>(1, (2 * side + 2) / 3);
  std::vector<std::int64_t> starts;
  for (std::int64_t start = 0; start + side < length; start += stride) starts.push_back(start);
  starts.push_back(length - side);
  return starts;
}

// The mean over all windows that cover a pixel. A smaller image is padded with 0, the mean colour.
Tensor slide(Deeplab& net, const Tensor& image, std::int64_t side) {
  const std::int64_t height = image.size(2);
  const std::int64_t width = image.size(3);
  const Tensor x = at::constant_pad_nd(
      image, {0, std::max<std::int64_t>(0, side - width), 0, std::max<std::int64_t>(0, side - height)});
  Tensor sum;
  const Tensor count = torch::zeros({1, 1, x.size(2), x.size(3)}, x.options().dtype(torch::kFloat));
  for (const std::int64_t top : window_starts(x.size(2), side)) {
    for (const std::int64_t left : window_starts(x.size(3), side)) {
      const auto part = [&](const Tensor& map) { return map.narrow(2, top, side).narrow(3, left, side); };
      const Tensor scores = probabilities(net, part(x));
      if (!sum.defined()) sum = torch::zeros({x.size(0), scores.size(1), x.size(2), x.size(3)}, scores.options());
      part(sum).add_(scores);
      part(count).add_(1);
    }
  }
  return (sum / count).narrow(2, 0, height).narrow(3, 0, width);
}

Tensor scores_at(Deeplab& net, const Tensor& x, int window) {
  return window > 0 ? slide(net, x, window) : probabilities(net, x);
}

}  // namespace

void validate(const InferenceOptions& o) {
  if (o.scales.empty()) fail(ErrorKind::Config, "scales is empty", "give at least one, such as --scales 1");
  for (const double scale : o.scales) check_range("scales", scale, 0.05, 20);
  check_range("window", o.window, 0, 65'535);
}

bool is_single_pass(const InferenceOptions& o) {
  return o.scales == std::vector<double>{1} && !o.flip && o.window == 0;
}

Tensor class_scores(Deeplab& net, const Tensor& images, const InferenceOptions& o) {
  const Tensor weight = net->parameters().front();
  const Tensor x = normalized(images, weight.device(), weight.scalar_type());
  if (is_single_pass(o)) return net(x).logits;
  const auto scaled = [](std::int64_t length, double scale) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(length) * scale));
  };
  Tensor sum;
  for (const double scale : o.scales) {
    const Tensor resized = resize_to(x, scaled(x.size(2), scale), scaled(x.size(3), scale));
    Tensor scores = scores_at(net, resized, o.window);
    if (o.flip) scores = (scores + scores_at(net, resized.flip(3), o.window).flip(3)) / 2;
    scores = resize_to(scores, x.size(2), x.size(3));
    sum = sum.defined() ? sum + scores : scores;
  }
  return sum / static_cast<double>(o.scales.size());
}

}  // namespace tandem::segment
