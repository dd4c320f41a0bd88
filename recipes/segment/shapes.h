#pragma once

#include <cstdint>
#include <filesystem>

#include "image/image.h"

namespace tandem::segment {

inline constexpr int kShapesSide = 96;

// One sample of builtin:shapes: one to three discs, squares and triangles of 12 to 40 pixels on textured noise, each in
// a random colour; later ones hide earlier ones.
struct ShapesSample {
  Image image;  // RGB
  Image mask;   // exact
  Image
      scribble;  // strokes of 2 pixels on each shape and on the background, about 3 % of the pixels; kIgnored elsewhere
  Image pseudo;  // the mask, but each shape is too large or too small by 1 to 4 pixels, and one in ten is missing
};

enum class ShapesSet { Train, Valid };

// Depends on nothing but its arguments.
ShapesSample make_shapes(ShapesSet set, std::int64_t index);

struct ShapesCounts {
  std::int64_t train = 1000;
  std::int64_t valid = 128;
};

// The same as a folder in the layout of Pascal VOC, for DataOptions as they are, with classes.yaml for --classes;
// `prepare` adds distance maps.
void write_shapes(const std::filesystem::path& folder, const ShapesCounts& counts);

}  // namespace tandem::segment
