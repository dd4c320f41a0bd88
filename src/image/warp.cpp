#include <tandem/error.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "image/exif.h"
#include "image/fill.h"
#include "image/row_loops.h"
#include "image/transform.h"

namespace tandem {
namespace {

using Matrix = std::array<double, 6>;

void check_matrix(const Matrix& matrix) {
  if (std::ranges::all_of(matrix, [](double value) { return std::isfinite(value); })) return;
  fail(ErrorKind::Data, "an affine matrix has a value that is not finite", "give six finite numbers");
}

// Along a row of the output: a point of the input is start + x * step.
struct Line {
  double start_x, step_x, start_y, step_y;
  double x(int i) const { return start_x + i * step_x; }
  double y(int i) const { return start_y + i * step_y; }
};

struct Limits {
  double least_x, most_x, least_y, most_y;  // the last ones are outside
};

struct Interval {
  int begin;
  int end;
};

// Where start + x * step is in [least, most), give or take two.
Interval roughly_inside(double start, double step, double least, double most, Interval whole) {
  if (std::abs(step) < 1e-9) return whole;
  const double one = (least - start) / step;
  const double other = (most - start) / step;
  const auto clamped = [&](double x) {
    return static_cast<int>(std::clamp<double>(x, whole.begin - 3, whole.end + 3));
  };
  return {std::max(clamped(std::min(one, other)) - 2, whole.begin),
          std::min(clamped(std::max(one, other)) + 2, whole.end)};
}

// The part of the row whose points lie inside of the limits, by the very numbers that decide.
Interval inside(const Line& line, const Limits& limits, int width) {
  const Interval x = roughly_inside(line.start_x, line.step_x, limits.least_x, limits.most_x, {0, width});
  const Interval y = roughly_inside(line.start_y, line.step_y, limits.least_y, limits.most_y, {0, width});
  Interval both{std::max(x.begin, y.begin), std::min(x.end, y.end)};
  const auto is_inside = [&](int i) {
    return line.x(i) >= limits.least_x && line.x(i) < limits.most_x && line.y(i) >= limits.least_y &&
           line.y(i) < limits.most_y;
  };
  while (both.begin < both.end && !is_inside(both.begin)) ++both.begin;
  while (both.begin < both.end && !is_inside(both.end - 1)) --both.end;
  return both.begin < both.end ? both : Interval{0, 0};
}

// The image with a border of one pixel: its own edge, or `fill`; and 8 bytes beyond the end.
struct Bordered {
  std::vector<std::uint8_t> pixels;
  std::size_t row_size;
};

template <class Edge>
Bordered with_border(const Image& image, const Edge& edge) {
  const auto pixel = static_cast<std::size_t>(image.channels);
  Bordered out{.pixels = {}, .row_size = image.row_size() + 2 * pixel};
  out.pixels.reserve(out.row_size * static_cast<std::size_t>(image.height + 2) + 8);
  for (int y = -1; y <= image.height; ++y) {
    edge(out.pixels, y, -1);
    const auto row = image.row(std::clamp(y, 0, image.height - 1));
    if (y >= 0 && y < image.height) {
      out.pixels.insert(out.pixels.end(), row.begin(), row.end());
    } else {
      for (int x = 0; x < image.width; ++x) edge(out.pixels, y, x);
    }
    edge(out.pixels, y, image.width);
  }
  out.pixels.resize(out.pixels.size() + 8);
  return out;
}

Bordered with_edge(const Image& image) {
  return with_border(image, [&](std::vector<std::uint8_t>& pixels, int y, int x) {
    const auto row = image.row(std::clamp(y, 0, image.height - 1));
    const auto pixel = static_cast<std::size_t>(image.channels);
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(pixel) * std::clamp(x, 0, image.width - 1);
    pixels.insert(pixels.end(), begin, begin + static_cast<std::ptrdiff_t>(pixel));
  });
}

Bordered with_fill(const Image& image, Fill fill) {
  return with_border(image, [&](std::vector<std::uint8_t>& pixels, int, int) {
    pixels.insert(pixels.end(), fill.begin(), fill.end());
  });
}

std::int64_t fixed_point(double value) { return std::llround(value * 4'294'967'296.0); }

// How points of the output become places between pixels of the bordered input.
struct Sampling {
  Matrix matrix;
  double output_shift;  // of the middle of a pixel
  double input_shift;   // to the upper left of four pixels of the bordered input
  Limits limits;
  bool rounds;
};

Image sample(const Image& image, const Bordered& in, const Sampling& sampling, ImageSize size, Fill fill) {
  Image out(size.height, size.width, image.channels);
  const Matrix& m = sampling.matrix;
  const double shift = sampling.output_shift;
  for (int y = 0; y < size.height; ++y) {
    const Line line{m[0] * shift + m[1] * (y + shift) + m[2], m[0], m[3] * shift + m[4] * (y + shift) + m[5], m[3]};
    const Interval part = inside(line, sampling.limits, size.width);
    std::uint8_t* row = out.row(y).data();
    fill_pixels(row, 0, part.begin, fill);
    fill_pixels(row, part.end, size.width, fill);
    if (part.begin == part.end) continue;
    const bool has_steps = part.end - part.begin > 1;  // then they are not longer than the image
    row_loops().sample_line({.in = in.pixels.data(),
                             .row_size = in.row_size,
                             .channels = image.channels,
                             .x = fixed_point(line.x(part.begin) + sampling.input_shift),
                             .y = fixed_point(line.y(part.begin) + sampling.input_shift),
                             .step_x = has_steps ? fixed_point(line.step_x) : 0,
                             .step_y = has_steps ? fixed_point(line.step_y) : 0,
                             .out = row + static_cast<std::ptrdiff_t>(part.begin) * image.channels,
                             .count = part.end - part.begin,
                             .rounds = sampling.rounds});
  }
  return out;
}

Image affine_bilinear(const Image& image, const Matrix& matrix, ImageSize size, Fill fill) {
  const Limits limits{0, static_cast<double>(image.width), 0, static_cast<double>(image.height)};
  return sample(image, with_edge(image),
                {.matrix = matrix, .output_shift = 0.5, .input_shift = 0.5, .limits = limits, .rounds = false}, size,
                fill);
}

template <std::size_t kChannels>
void nearest_line(const Image& image, const Line& line, std::uint8_t* to, int width) {
  for (int i = 0; i < width; ++i, to += kChannels) {
    const double x = line.x(i);
    const double y = line.y(i);
    if (!(x >= 0 && x < image.width && y >= 0 && y < image.height)) continue;
    const std::uint8_t* from = image.row(static_cast<int>(y)).data() + static_cast<std::size_t>(x) * kChannels;
    for (std::size_t c = 0; c < kChannels; ++c) to[c] = from[c];
  }
}

// Pillow's places, unless the image is only scaled, are multiples of 1/65536 of a pixel: with others a pixel between
// two would at times be the other one.
double in_65536ths(double value) { return std::floor(value * 65'536.0 + 0.5) / 65'536.0; }

Image affine_nearest(const Image& image, const Matrix& matrix, ImageSize size, Fill fill) {
  Image out(size.height, size.width, image.channels);
  Matrix m = matrix;
  m[2] += m[0] * 0.5 + m[1] * 0.5;
  m[5] += m[3] * 0.5 + m[4] * 0.5;
  if (m[1] != 0 || m[3] != 0) std::ranges::transform(m, m.begin(), in_65536ths);
  for (int y = 0; y < size.height; ++y) {
    const Line line{m[2] + y * m[1], m[0], m[5] + y * m[4], m[3]};
    std::uint8_t* row = out.row(y).data();
    fill_pixels(row, 0, size.width, fill);
    if (image.channels == 1) nearest_line<1>(image, line, row, size.width);
    if (image.channels == 3) nearest_line<3>(image, line, row, size.width);
    if (image.channels == 4) nearest_line<4>(image, line, row, size.width);
  }
  return out;
}

// Pillow's matrix has 15 decimals.
double in_15_decimals(double value) { return std::nearbyint(value * 1e15) / 1e15; }

Matrix inverse_of(const Matrix& m) {
  const double determinant = m[0] * m[4] - m[1] * m[3];
  if (determinant == 0) {
    fail(ErrorKind::Data, "an affine matrix of determinant 0 cannot be inverted", "give one that keeps an area");
  }
  const double a = m[4] / determinant;
  const double b = -m[1] / determinant;
  const double c = -m[3] / determinant;
  const double d = m[0] / determinant;
  return {a, b, -a * m[2] - b * m[5], c, d, -c * m[2] - d * m[5]};
}

}  // namespace

Image affine(const Image& image, const std::array<double, 6>& matrix, ImageSize size, Interpolation interpolation,
             Fill fill) {
  check_fill(image, fill);
  check_matrix(matrix);
  return interpolation == Interpolation::Bilinear ? affine_bilinear(image, matrix, size, fill)
                                                  : affine_nearest(image, matrix, size, fill);
}

Image rotate(const Image& image, double degrees, Interpolation interpolation, Fill fill) {
  check_fill(image, fill);
  if (!std::isfinite(degrees))
    fail(ErrorKind::Data, str("a rotation by ", degrees, " degrees"), "give a finite number");
  const double rest = std::fmod(degrees, 360.0);
  const double turned = rest < 0 ? rest + 360 : rest;
  if (turned == 0) return image;
  if (turned == 180) return oriented(image, 3);
  if (turned == 90 && image.height == image.width) return oriented(image, 8);
  if (turned == 270 && image.height == image.width) return oriented(image, 6);
  const double radians = -turned * std::numbers::pi / 180;
  const double cosine = in_15_decimals(std::cos(radians));
  const double sine = in_15_decimals(std::sin(radians));
  const double x = image.width / 2.0;
  const double y = image.height / 2.0;
  const Matrix matrix{cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y};
  return affine(image, matrix, {image.height, image.width}, interpolation, fill);
}

Image warp_affine_opencv(const Image& image, const std::array<double, 6>& matrix, ImageSize size, Fill fill) {
  check_fill(image, fill);
  check_matrix(matrix);
  const Matrix inverse = inverse_of(matrix);
  check_matrix(inverse);
  constexpr double kHair = 1e-4;  // further out the fill has all the weight
  const Limits limits{-1 + kHair, image.width - kHair, -1 + kHair, image.height - kHair};
  return sample(image, with_fill(image, fill),
                {.matrix = inverse, .output_shift = 0, .input_shift = 1, .limits = limits, .rounds = true}, size, fill);
}

}  // namespace tandem
