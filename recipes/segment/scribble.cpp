#include "recipes/segment/scribble.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>

namespace tandem::segment {
namespace {

struct Place {
  double y = 0;
  double x = 0;
};

class StrokeWalk {
 public:
  StrokeWalk(Image& scribble, const Image& owners, const Stroke& stroke, Draws& draws)
      : scribble_(scribble), owners_(owners), stroke_(stroke), draws_(draws) {}

  void draw() {
    std::optional<Place> place = start();
    if (!place) return mark_one_pixel();
    double heading = draws_.from(0, 2 * std::numbers::pi);
    for (int i = 0; i < stroke_.steps; ++i) {
      mark(*place);
      heading += draws_.from(-0.5, 0.5);
      place = step(*place, heading);
    }
    mark(*place);
  }

 private:
  // Whether the 2 x 2 pixels there belong to the region.
  bool fits(const Place& place) const {
    if (place.y < 0 || place.x < 0) return false;
    const int y = static_cast<int>(place.y);
    const int x = static_cast<int>(place.x);
    if (y + 1 >= owners_.height || x + 1 >= owners_.width) return false;
    const auto is_ours = [&](int down, int across) { return owners_.at(y + down, x + across) == stroke_.owner; };
    return is_ours(0, 0) && is_ours(0, 1) && is_ours(1, 0) && is_ours(1, 1);
  }

  // A place in the region: at random, or else the first one.
  std::optional<Place> start() {
    for (int i = 0; i < 200; ++i) {
      const Place place{draws_.from(0, owners_.height), draws_.from(0, owners_.width)};
      if (fits(place)) return place;
    }
    for (int y = 0; y + 1 < owners_.height; ++y) {
      for (int x = 0; x + 1 < owners_.width; ++x) {
        const Place place{static_cast<double>(y), static_cast<double>(x)};
        if (fits(place)) return place;
      }
    }
    return std::nullopt;
  }

  // Turns at the edge of the region; stays where every way leads out of it.
  Place step(const Place& from, double& heading) {
    for (int i = 0; i < 16; ++i) {
      const Place to{from.y + std::sin(heading), from.x + std::cos(heading)};
      if (fits(to)) return to;
      heading = draws_.from(0, 2 * std::numbers::pi);
    }
    return from;
  }

  void mark(const Place& place) {
    for (int i = 0; i < 4; ++i) {
      scribble_.row(static_cast<int>(place.y) + i / 2)[static_cast<std::size_t>(place.x) + i % 2] = stroke_.label;
    }
  }

  void mark_one_pixel() {
    const auto found = std::ranges::find(owners_.pixels, stroke_.owner);
    if (found != owners_.pixels.end()) scribble_.pixels[found - owners_.pixels.begin()] = stroke_.label;
  }

  Image& scribble_;
  const Image& owners_;
  const Stroke& stroke_;
  Draws& draws_;
};

}  // namespace

void draw_stroke(Image& scribble, const Image& owners, const Stroke& stroke, Draws& draws) {
  StrokeWalk(scribble, owners, stroke, draws).draw();
}

}  // namespace tandem::segment
