#include "recipes/segment/shapes.h"

#include <tandem/random_key.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "recipe/held_out.h"
#include "recipes/segment/classes.h"
#include "recipes/segment/scribble.h"

namespace tandem::segment {
namespace {

using Colour = std::array<double, 3>;

// A disc, or a regular polygon; `inner` is the radius of the circle inside.
struct Shape {
  int kind = 1;  // its class
  double y = 0;
  double x = 0;
  double inner = 0;
  double outer = 0;  // radius of the circle around it
  Colour colour = {};
  std::vector<std::array<double, 2>> normals = {};  // of the sides of a polygon

  // How far a point lies outside; negative: inside. Beyond a corner, the distance to the line of the farther side.
  double outside(double py, double px) const {
    if (normals.empty()) return std::hypot(py - y, px - x) - inner;
    double most = -outer;
    for (const auto& [down, across] : normals) most = std::max(most, down * (py - y) + across * (px - x));
    return most - inner;
  }
};

std::vector<std::array<double, 2>> polygon_normals(int num_sides, double angle) {
  std::vector<std::array<double, 2>> normals;
  for (int i = 0; i < num_sides; ++i) {
    const double normal = angle + 2 * std::numbers::pi * i / num_sides;
    normals.push_back({std::sin(normal), std::cos(normal)});
  }
  return normals;
}

Colour draw_colour(Draws& draws) { return {draws.from(30, 225), draws.from(30, 225), draws.from(30, 225)}; }

double contrast(const Colour& a, const Colour& b) {
  return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
}

Shape draw_shape(Draws& draws, const Colour& background) {
  constexpr double kLeastContrast = 70;
  Shape shape;
  shape.kind = 1 + draws.below(3);
  const double size = draws.from(12, 40);
  shape.inner = shape.kind == 3 ? 0.3 * size : 0.5 * size;
  shape.outer = shape.kind == 1 ? 0.5 * size : shape.kind == 2 ? std::numbers::sqrt2 * 0.5 * size : 0.6 * size;
  shape.y = draws.from(0.5 * size, kShapesSide - 0.5 * size);
  shape.x = draws.from(0.5 * size, kShapesSide - 0.5 * size);
  const double angle = draws.from(0, 2 * std::numbers::pi);
  if (shape.kind > 1) shape.normals = polygon_normals(shape.kind == 2 ? 4 : 3, angle);
  do {
    shape.colour = draw_colour(draws);
  } while (contrast(shape.colour, background) < kLeastContrast);
  return shape;
}

// Calls fill(y, x) for each pixel of the shape, which is made larger by `growth` pixels.
template <class Fill>
void for_each_pixel(const Shape& shape, double growth, const Fill& fill) {
  const double reach = shape.outer + 2 * std::max(growth, 0.0) + 1;
  const auto begin = [&](double centre) { return std::max(0, static_cast<int>(centre - reach)); };
  const auto end = [&](double centre) { return std::min(kShapesSide, static_cast<int>(centre + reach) + 1); };
  for (int y = begin(shape.y); y < end(shape.y); ++y) {
    for (int x = begin(shape.x); x < end(shape.x); ++x) {
      if (shape.outside(y + 0.5, x + 0.5) < growth) fill(y, x);
    }
  }
}

// Which shape is seen at each pixel, from 1 on; 0: the background.
Image draw_owners(const std::vector<Shape>& shapes) {
  Image owners(kShapesSide, kShapesSide, 1);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for_each_pixel(shapes[i], 0, [&](int y, int x) { owners.row(y)[x] = static_cast<std::uint8_t>(i + 1); });
  }
  return owners;
}

Image draw_mask(const Image& owners, const std::vector<Shape>& shapes) {
  Image mask = owners;
  for (std::uint8_t& pixel : mask.pixels) pixel = pixel == 0 ? 0 : static_cast<std::uint8_t>(shapes[pixel - 1].kind);
  return mask;
}

// A small shape shrinks by less, so that it does not vanish.
Image draw_pseudo(Draws& draws, const std::vector<Shape>& shapes) {
  Image pseudo(kShapesSide, kShapesSide, 1);
  for (const Shape& shape : shapes) {
    const bool is_missing = draws.from(0, 1) < 0.1;
    const double error = 1 + draws.below(4);
    const double growth = draws.below(2) == 0 ? error : -std::min(error, 0.5 * shape.inner);
    if (is_missing) continue;
    for_each_pixel(shape, growth, [&](int y, int x) { pseudo.row(y)[x] = static_cast<std::uint8_t>(shape.kind); });
  }
  return pseudo;
}

// Smooth noise from -1 to 1: random values on a grid of 12 pixels, interpolated.
class SmoothNoise {
 public:
  explicit SmoothNoise(Draws& draws) {
    for (auto& row : grid_) {
      for (double& value : row) value = draws.from(-1, 1);
    }
  }

  double at(int y, int x) const {
    const double across = x % kCell / double{kCell};
    const double above = between(y / kCell, x / kCell, across);
    const double below = between(y / kCell + 1, x / kCell, across);
    return above + y % kCell / double{kCell} * (below - above);
  }

 private:
  static constexpr int kCell = 12;
  static constexpr std::size_t kSide = kShapesSide / kCell + 1;

  double between(int row, int column, double across) const {
    const auto& values = grid_[static_cast<std::size_t>(row)];
    const double left = values[static_cast<std::size_t>(column)];
    return left + across * (values[static_cast<std::size_t>(column) + 1] - left);
  }

  std::array<std::array<double, kSide>, kSide> grid_ = {};
};

Image draw_image(Draws& draws, const Colour& background, const Image& owners, const std::vector<Shape>& shapes) {
  constexpr double kSmooth = 35;
  constexpr double kGrain = 50.0 / 255;  // bytes to -25 .. 25
  const SmoothNoise light(draws);
  const Colour tint = {draws.from(-1, 1), draws.from(-1, 1), draws.from(-1, 1)};
  Image image(kShapesSide, kShapesSide, 3);
  for (int y = 0; y < kShapesSide; ++y) {
    for (int x = 0; x < kShapesSide; ++x) {
      const std::uint8_t owner = owners.at(y, x);
      const Colour& colour = owner == 0 ? background : shapes[owner - 1].colour;
      const double smooth = kSmooth * light.at(y, x) * (owner == 0 ? 1 : 0.4);
      const std::uint64_t grain = draws.bits();
      for (std::size_t c = 0; c < 3; ++c) {
        const double noise = kGrain * static_cast<double>(grain >> (8 * c) & 255) - 25;
        const double value = colour[c] + smooth * (1 + tint[c]) + noise;
        image.row(y)[3 * static_cast<std::size_t>(x) + c] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return image;
}

// About 3 % of the pixels, most of them on the background.
Image draw_scribbles(Draws& draws, const Image& owners, const std::vector<Shape>& shapes) {
  Image scribble(kShapesSide, kShapesSide, 1, kIgnored);
  draw_stroke(scribble, owners, {.owner = 0, .label = 0, .steps = 80}, draws);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Stroke stroke{.owner = static_cast<std::uint8_t>(i + 1),
                        .label = static_cast<std::uint8_t>(shapes[i].kind),
                        .steps = static_cast<int>(2 * shapes[i].inner)};
    draw_stroke(scribble, owners, stroke, draws);
  }
  return scribble;
}

}  // namespace

ShapesSample make_shapes(ShapesSet set, std::int64_t index) {
  Draws draws(random_key(kDataSeed, Draw::Synthetic, static_cast<int>(set), index));
  const Colour background = draw_colour(draws);
  std::vector<Shape> shapes(static_cast<std::size_t>(1 + draws.below(3)));
  for (Shape& shape : shapes) shape = draw_shape(draws, background);
  const Image owners = draw_owners(shapes);
  ShapesSample sample;
  sample.mask = draw_mask(owners, shapes);
  sample.scribble = draw_scribbles(draws, owners, shapes);
  sample.pseudo = draw_pseudo(draws, shapes);
  sample.image = draw_image(draws, background, owners, shapes);
  return sample;
}

}  // namespace tandem::segment
