#include <algorithm>
#include <cmath>

#include "image/transform.h"

namespace tandem {

Letterboxed letterbox(const Image& image, ImageSize size, Fill fill, bool enlarge) {
  double scale =
      std::min(static_cast<double>(size.height) / image.height, static_cast<double>(size.width) / image.width);
  if (!enlarge) scale = std::min(scale, 1.0);
  const auto scaled_side = [&](int side) { return std::max(static_cast<int>(std::nearbyint(side * scale)), 1); };
  const ImageSize inner{scaled_side(image.height), scaled_side(image.width)};
  const bool fits = inner.height == image.height && inner.width == image.width;
  const Image resized = fits ? image : resize_linear_opencv(image, inner);
  const int top = (size.height - inner.height) / 2;  // of an odd rest the smaller half
  const int left = (size.width - inner.width) / 2;
  return {.image = crop(resized, -top, -left, size, fill), .scale = scale, .top = top, .left = left};
}

}  // namespace tandem
