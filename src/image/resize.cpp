#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "image/row_loops.h"

namespace tandem {
namespace {

// For each place of the output the pixels of the input that it is mixed from.
struct MixPlan {
  std::vector<int> firsts;
  std::vector<int> counts;
  std::vector<std::int32_t> weights;
  int stride = 0;  // weights a place
};

double triangle(double distance) { return std::max(1.0 - std::abs(distance), 0.0); }

// A triangle as wide as a pixel of the input, or of the output if that is wider.
MixPlan plan_mix(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double width = std::max(scale, 1.0);
  MixPlan plan;
  plan.stride = 2 * static_cast<int>(std::ceil(width)) + 1;
  plan.weights.resize(static_cast<std::size_t>(plan.stride) * static_cast<std::size_t>(to));
  std::vector<double> shares(static_cast<std::size_t>(plan.stride));
  for (int x = 0; x < to; ++x) {
    const double centre = (x + 0.5) * scale;
    const int first = std::max(static_cast<int>(std::floor(centre - width + 0.5)), 0);
    const int count = std::min(static_cast<int>(std::floor(centre + width + 0.5)), from) - first;
    for (int k = 0; k < count; ++k) {
      shares[static_cast<std::size_t>(k)] = triangle((k + first - centre + 0.5) * (1.0 / width));
    }
    const double sum = std::accumulate(shares.begin(), shares.begin() + count, 0.0);
    std::int32_t* weights = plan.weights.data() + static_cast<std::ptrdiff_t>(x) * plan.stride;
    for (int k = 0; k < count; ++k) {
      const double share = shares[static_cast<std::size_t>(k)] / sum;
      weights[k] = static_cast<std::int32_t>(std::floor(share * (1 << kMixBits) + 0.5));
    }
    plan.firsts.push_back(first);
    plan.counts.push_back(count);
  }
  return plan;
}

Image mix_columns(const Image& image, int width) {
  const MixPlan plan = plan_mix(image.width, width);
  Image out(image.height, width, image.channels);
  std::vector<std::uint8_t> last_row(image.row_size() + 8);  // may be read beyond its end
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* in = image.row(y).data();
    if (y + 1 == image.height) {
      std::ranges::copy(image.row(y), last_row.begin());
      in = last_row.data();
    }
    row_loops().mix_columns({.in = in,
                             .firsts = plan.firsts.data(),
                             .counts = plan.counts.data(),
                             .weights = plan.weights.data(),
                             .stride = plan.stride,
                             .out = out.row(y).data(),
                             .width = width,
                             .channels = image.channels});
  }
  return out;
}

Image mix_rows(const Image& image, int height) {
  const MixPlan plan = plan_mix(image.height, height);
  Image out(height, image.width, image.channels);
  std::vector<const std::uint8_t*> rows(static_cast<std::size_t>(plan.stride));
  for (int y = 0; y < height; ++y) {
    const int first = plan.firsts[static_cast<std::size_t>(y)];
    const int count = plan.counts[static_cast<std::size_t>(y)];
    for (int k = 0; k < count; ++k) rows[static_cast<std::size_t>(k)] = image.row(first + k).data();
    row_loops().mix_rows({.rows = rows.data(),
                          .weights = plan.weights.data() + static_cast<std::ptrdiff_t>(y) * plan.stride,
                          .num_rows = count,
                          .out = out.row(y).data(),
                          .size = out.row_size()});
  }
  return out;
}

// Which pixel of `from` is nearest to the centre of each of `to`, by the sums of steps that Pillow makes.
std::vector<std::size_t> nearest_places(int from, int to) {
  const double step = static_cast<double>(from) / to;
  std::vector<std::size_t> places;
  double at = step * 0.5;
  for (int x = 0; x < to; ++x, at += step) places.push_back(static_cast<std::size_t>(std::min(at, from - 1.0)));
  return places;
}

template <std::size_t kChannels>
void pick_pixels(std::span<const std::uint8_t> from, std::span<const std::size_t> places, std::uint8_t* to) {
  for (const std::size_t place : places) {
    for (std::size_t c = 0; c < kChannels; ++c) *to++ = from[place * kChannels + c];
  }
}

}  // namespace

Image resize_bilinear(const Image& image, ImageSize size) {
  check_size(size.height, size.width, image.channels);
  if (image.width == size.width) return image.height == size.height ? image : mix_rows(image, size.height);
  const Image wide = mix_columns(image, size.width);
  return image.height == size.height ? wide : mix_rows(wide, size.height);
}

Image resize_nearest(const Image& image, ImageSize size) {
  Image out(size.height, size.width, image.channels);
  const std::vector<std::size_t> columns = nearest_places(image.width, size.width);
  const std::vector<std::size_t> rows = nearest_places(image.height, size.height);
  for (int y = 0; y < size.height; ++y) {
    const auto from = image.row(static_cast<int>(rows[static_cast<std::size_t>(y)]));
    std::uint8_t* to = out.row(y).data();
    if (image.channels == 1) pick_pixels<1>(from, columns, to);
    if (image.channels == 3) pick_pixels<3>(from, columns, to);
    if (image.channels == 4) pick_pixels<4>(from, columns, to);
  }
  return out;
}

}  // namespace tandem
