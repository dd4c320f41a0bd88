#include "recipes/segment/distance_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/check_range.h"
#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

bool is_foreground(std::uint8_t label) { return label != 0 && label != kIgnored; }

Image stroke_pixels(const Image& scribble) {
  Image sources = scribble;
  for (std::uint8_t& pixel : sources.pixels) pixel = is_foreground(pixel) ? 1 : 0;
  return sources;
}

Image contour_pixels(const Image& labels) {
  const Image mask = stroke_pixels(labels);
  Image contour(mask.height, mask.width, 1);
  for (int y = 0; y < mask.height; ++y) {
    const auto row = mask.row(y);
    const auto above = mask.row(std::max(y - 1, 0));
    const auto below = mask.row(std::min(y + 1, mask.height - 1));
    const auto out = contour.row(y);
    const std::size_t last = row.size() - 1;
    const auto mark = [&](std::size_t left, std::size_t x, std::size_t right) {
      out[x] = static_cast<std::uint8_t>(row[x] & ~(above[x] & below[x] & row[left] & row[right]));
    };
    mark(0, 0, std::min<std::size_t>(1, last));
    for (std::size_t x = 1; x < last; ++x) mark(x - 1, x, x + 1);
    mark(last == 0 ? 0 : last - 1, last, last);
  }
  return contour;
}

// The distance of each pixel to the nearest source in its column, at most `limit`.
std::vector<std::uint16_t> column_distances(const Image& sources, int limit) {
  const auto width = static_cast<std::size_t>(sources.width);
  const auto height = static_cast<std::size_t>(sources.height);
  const auto most = static_cast<std::uint16_t>(limit);
  std::vector<std::uint16_t> distances(width * height);
  const auto sweep = [&](std::size_t y, std::span<const std::uint16_t> before) {
    std::uint16_t* row = distances.data() + y * width;
    for (std::size_t x = 0; x < width; ++x) {
      row[x] = std::min(row[x], static_cast<std::uint16_t>(before[x] + 1));
    }
  };
  for (std::size_t i = 0; i < distances.size(); ++i) distances[i] = sources.pixels[i] == 0 ? most : std::uint16_t{0};
  for (std::size_t y = 1; y < height; ++y) sweep(y, std::span(distances).subspan((y - 1) * width, width));
  for (std::size_t y = height - 1; y > 0; --y) sweep(y - 1, std::span(distances).subspan(y * width, width));
  return distances;
}

// The lower envelope of the parabolas (x - centre)^2 + height over one row.
class RowEnvelope {
 public:
  explicit RowEnvelope(std::size_t width) : centres_(width), heights_(width), begins_(width + 1) {}

  // Squared distances, at most limit * limit, from the distances within each column.
  void find(std::span<const std::uint16_t> column, std::span<std::int32_t> squared, std::int32_t limit) {
    count_ = 0;
    for (std::size_t x = 0; x < column.size(); ++x) {
      if (column[x] >= limit) continue;
      add(static_cast<std::int32_t>(x), std::int32_t{column[x]} * column[x], static_cast<std::int32_t>(column.size()));
    }
    begins_[count_] = static_cast<std::int32_t>(column.size());
    std::ranges::fill(squared, limit * limit);
    for (std::size_t i = 0; i < count_; ++i) fill(i, squared, limit);
  }

 private:
  // A parabola is the lowest from where it falls below the one to its left on.
  void add(std::int32_t centre, std::int32_t height, std::int32_t width) {
    std::int32_t begin = 0;
    while (count_ > 0) {
      begin = first_below(centre, height);
      if (begin > begins_[count_ - 1]) break;
      --count_;
      begin = 0;
    }
    if (begin >= width) return;
    centres_[count_] = centre;
    heights_[count_] = height;
    begins_[count_++] = begin;
  }

  // The first whole x where the new parabola is below the last one, or 0.
  std::int32_t first_below(std::int32_t centre, std::int32_t height) const {
    const std::int64_t last = centres_[count_ - 1];
    const std::int64_t sum = std::int64_t{centre} * centre + height - last * last - heights_[count_ - 1];
    return sum < 0 ? 0 : static_cast<std::int32_t>(sum / (2 * (centre - last)) + 1);
  }

  void fill(std::size_t index, std::span<std::int32_t> squared, std::int32_t limit) const {
    const std::int32_t centre = centres_[index];
    const std::int32_t end = std::min(begins_[index + 1], centre + limit);
    for (std::int32_t x = std::max(begins_[index], centre - limit); x < end; ++x) {
      squared[x] = std::min((x - centre) * (x - centre) + heights_[index], limit * limit);
    }
  }

  std::size_t count_ = 0;
  std::vector<std::int32_t> centres_;
  std::vector<std::int32_t> heights_;
  std::vector<std::int32_t> begins_;  // where each is the lowest
};

// Where D reaches 255.
int saturation(double lambda) { return static_cast<int>(std::ceil(255 / std::sqrt(lambda))); }

// D of each pixel, after `to_value`.
template <class ToValue>
Image distance_image(const Image& sources, double lambda, const ToValue& to_value) {
  const int limit = saturation(lambda);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(limit) * static_cast<std::size_t>(limit) + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double distance = std::min(255.0, std::sqrt(lambda * static_cast<double>(i)));
    values[i] = to_value(static_cast<std::uint8_t>(std::lround(distance)));
  }
  const std::vector<std::int32_t> squared = squared_distances(sources, limit);
  Image map(sources.height, sources.width, 1);
  for (std::size_t i = 0; i < squared.size(); ++i) map.pixels[i] = values[static_cast<std::size_t>(squared[i])];
  return map;
}

}  // namespace

void validate(const DistanceOptions& o) {
  check_range("lambda-s", o.lambda_s, 0.01, 65'025);
  check_range("lambda-c", o.lambda_c, 0.01, 65'025);
}

std::vector<std::int32_t> squared_distances(const Image& sources, int limit) {
  const std::vector<std::uint16_t> columns = column_distances(sources, limit);
  std::vector<std::int32_t> squared(columns.size());
  const auto width = static_cast<std::size_t>(sources.width);
  RowEnvelope envelope(width);
  for (std::size_t begin = 0; begin < columns.size(); begin += width) {
    envelope.find(std::span(columns).subspan(begin, width), std::span(squared).subspan(begin, width), limit);
  }
  return squared;
}

Image near_scribble_map(const Image& scribble, double lambda) {
  return distance_image(stroke_pixels(scribble), lambda,
                        [](std::uint8_t distance) { return static_cast<std::uint8_t>(255 - distance); });
}

Image near_contour_map(const Image& pseudo, double lambda) {
  return distance_image(contour_pixels(pseudo), lambda, [](std::uint8_t distance) { return distance; });
}

}  // namespace tandem::segment
