#include "recipes/segment/pictures.h"

#include <algorithm>

#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

constexpr std::uint8_t kWhite = 255;
constexpr int kGap = 4;  // pixels between cells

}  // namespace

Image coloured(const Image& indices, std::span<const std::uint8_t> palette) {
  Image picture(indices.height, indices.width, 3, kWhite);
  for (std::size_t i = 0; i < indices.pixels.size(); ++i) {
    const std::size_t index = indices.pixels[i];
    if (index == kIgnored) continue;
    for (std::size_t c = 0; c < 3; ++c) picture.pixels[3 * i + c] = palette[3 * index + c];
  }
  return picture;
}

Image overlay(const Image& image, const Image& indices, std::span<const std::uint8_t> palette) {
  Image picture = image;
  for (std::size_t i = 0; i < indices.pixels.size(); ++i) {
    const std::size_t index = indices.pixels[i];
    if (index == 0 || index == kIgnored) continue;
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& value = picture.pixels[3 * i + c];
      value = static_cast<std::uint8_t>((value + palette[3 * index + c]) / 2);
    }
  }
  return picture;
}

Image contact_sheet(const std::vector<std::vector<Image>>& rows) {
  int height = 0;
  int width = 0;
  std::size_t num_columns = 0;
  for (const std::vector<Image>& row : rows) {
    num_columns = std::max(num_columns, row.size());
    for (const Image& picture : row) {
      height = std::max(height, picture.height);
      width = std::max(width, picture.width);
    }
  }
  Image sheet(static_cast<int>(rows.size()) * (height + kGap) + kGap,
              static_cast<int>(num_columns) * (width + kGap) + kGap, 3, kWhite);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const Image& picture = rows[r][c];
      const int top = kGap + static_cast<int>(r) * (height + kGap);
      const int left = kGap + static_cast<int>(c) * (width + kGap);
      for (int y = 0; y < picture.height; ++y) {
        std::ranges::copy(picture.row(y), sheet.row(top + y).begin() + static_cast<std::ptrdiff_t>(3) * left);
      }
    }
  }
  return sheet;
}

}  // namespace tandem::segment
