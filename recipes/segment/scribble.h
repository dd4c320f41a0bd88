#pragma once

#include <cstdint>

#include "image/image.h"
#include "recipes/segment/draws.h"

namespace tandem::segment {

struct Stroke {
  std::uint8_t owner = 0;  // the region to stay in
  std::uint8_t label = 0;  // what to write
  int steps = 0;
};

// A random walk of 2 pixels' width within the pixels of `owners` that have the value `owner`; where the region is too
// narrow for that, one pixel; nothing if there is no such pixel.
void draw_stroke(Image& scribble, const Image& owners, const Stroke& stroke, Draws& draws);

}  // namespace tandem::segment
