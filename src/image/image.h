#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// 8-bit pixels, row by row from the top, channels interleaved: 1 (grey, or a class index), 3 (RGB) or 4 (RGBA).
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels = {};

  Image() = default;
  // Every value is `fill`. An Error of kind Data unless check_size accepts the sides.
  Image(int rows, int columns, int num_channels, std::uint8_t fill = 0);

  std::size_t row_size() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels); }
  std::span<std::uint8_t> row(int y) { return {pixels.data() + static_cast<std::size_t>(y) * row_size(), row_size()}; }
  std::span<const std::uint8_t> row(int y) const {
    return {pixels.data() + static_cast<std::size_t>(y) * row_size(), row_size()};
  }
  std::uint8_t at(int y, int x, int channel = 0) const {
    return row(y)[static_cast<std::size_t>(x) * static_cast<std::size_t>(channels) + static_cast<std::size_t>(channel)];
  }

  friend bool operator==(const Image&, const Image&) = default;
};

// The largest image that is allocated. Pixels: those of Pillow's decompression bomb check, 1 GB as uncompressed RGBX
// / 3.
inline constexpr std::int64_t kMostPixels = std::int64_t{1024} * 1024 * 1024 / 4 / 3;
inline constexpr std::int64_t kMostSide = 65'535;

// An Error of kind Data unless both sides are from 1 to kMostSide, with 1, 3 or 4 channels and at most kMostPixels
// pixels.
void check_size(std::int64_t height, std::int64_t width, std::int64_t channels);

// The same for a whole image, which must also have height x width x channels pixels.
void check_image(const Image& image);

}  // namespace tandem
