#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "image/image.h"

namespace tandem::segment {

// Class indices as colours of a palette of 256 RGB triples; kIgnored is white.
Image coloured(const Image& indices, std::span<const std::uint8_t> palette);

// The image with the colours of its classes over it; where the class is 0 (background) or kIgnored it stays as it is.
Image overlay(const Image& image, const Image& indices, std::span<const std::uint8_t> palette);

// Pictures in rows, each with its upper left corner in a grid of equal cells, on white.
Image contact_sheet(const std::vector<std::vector<Image>>& rows);

}  // namespace tandem::segment
