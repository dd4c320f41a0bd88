#include "image/image.h"

#include <tandem/error.h>

#include "base/text.h"

namespace tandem {

void check_size(std::int64_t height, std::int64_t width, std::int64_t channels) {
  const bool has_sides = height >= 1 && height <= kMostSide && width >= 1 && width <= kMostSide;
  const bool has_channels = channels == 1 || channels == 3 || channels == 4;
  if (has_sides && has_channels && height * width <= kMostPixels) return;
  fail(ErrorKind::Data, str("an image of ", width, " x ", height, " pixels and ", channels, " channels"),
       str("give 1, 3 or 4 channels, sides from 1 to ", kMostSide, " and at most ", kMostPixels, " pixels"));
}

Image::Image(int rows, int columns, int num_channels, std::uint8_t fill)
    : height(rows), width(columns), channels(num_channels) {
  check_size(height, width, channels);
  pixels.assign(static_cast<std::size_t>(height) * row_size(), fill);
}

void check_image(const Image& image) {
  check_size(image.height, image.width, image.channels);
  if (image.pixels.size() == static_cast<std::size_t>(image.height) * image.row_size()) return;
  fail(ErrorKind::Data,
       str("an image of ", image.height, " x ", image.width, " x ", image.channels, " has ", image.pixels.size(),
           " bytes of pixels"),
       "give height x width x channels bytes");
}

}  // namespace tandem
