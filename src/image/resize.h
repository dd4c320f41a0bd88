#pragma once

#include "image/image.h"

namespace tandem {

struct ImageSize {
  int height = 0;
  int width = 0;
};

// Pillow's resize: bilinear with antialiasing, and nearest for class indices.
Image resize_bilinear(const Image& image, ImageSize size);
Image resize_nearest(const Image& image, ImageSize size);

// OpenCV's resize with INTER_LINEAR: no antialiasing.
Image resize_linear_opencv(const Image& image, ImageSize size);

}  // namespace tandem
