#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "image/image.h"
#include "image/resize.h"

namespace tandem {

enum class Interpolation { Nearest, Bilinear };

// The value of a pixel beyond the image, one for each channel.
using Fill = std::span<const std::uint8_t>;

// The window of that size whose upper left corner is at (top, left), which may be negative or lie outside.
Image crop(const Image& image, int top, int left, ImageSize size, Fill fill);

Image flip_horizontal(const Image& image);

// Counter-clockwise by degrees around the centre, the size stays: Pillow's rotate.
Image rotate(const Image& image, double degrees, Interpolation interpolation, Fill fill);

// matrix: row-major 2 x 3, from points of the output to points of the input: Pillow's transform with AFFINE.
Image affine(const Image& image, const std::array<double, 6>& matrix, ImageSize size, Interpolation interpolation,
             Fill fill);

// OpenCV's warpAffine with INTER_LINEAR; `matrix` maps points of the input to points of the output.
Image warp_affine_opencv(const Image& image, const std::array<double, 6>& matrix, ImageSize size, Fill fill);

// OpenCV's GaussianBlur of odd kernel size, with the border mirrored (REFLECT_101). sigma 0: OpenCV's for that size.
Image gaussian_blur(const Image& image, int kernel, double sigma = 0);

// OpenCV's 8-bit HSV, hue 0 .. 179.
Image rgb_to_hsv(const Image& image);
Image hsv_to_rgb(const Image& image);

// ultralytics' jitter: hue is shifted by `hue` * 180 (modulo 180), saturation and value are multiplied, by tables.
struct HsvGains {
  double hue = 0;
  double saturation = 1;
  double value = 1;
};
Image jitter_hsv(const Image& image, const HsvGains& gains);

// Scaled to fit into `size` (INTER_LINEAR, aspect kept), centred on `fill`.
struct Letterboxed {
  Image image;
  double scale = 1;
  int top = 0;
  int left = 0;
};
Letterboxed letterbox(const Image& image, ImageSize size, Fill fill, bool enlarge = true);

}  // namespace tandem
