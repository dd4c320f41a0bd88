#include "image/transform.h"

#include <tandem/error.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "image/fill.h"

namespace tandem {
namespace {

template <std::size_t kChannels>
void mirror_row(std::span<const std::uint8_t> from, std::span<std::uint8_t> to) {
  const std::uint8_t* in = from.data();
  std::uint8_t* out = to.data() + to.size();
  for (std::size_t x = 0; x < to.size() / kChannels; ++x, in += kChannels) {
    out -= kChannels;
    for (std::size_t c = 0; c < kChannels; ++c) out[c] = in[c];
  }
}

}  // namespace

void check_fill(const Image& image, Fill fill) {
  if (fill.size() == static_cast<std::size_t>(image.channels)) return;
  fail(ErrorKind::Internal, str("a fill of ", fill.size(), " values for an image of ", image.channels, " channels"),
       "give one value for each channel");
}

void fill_pixels(std::uint8_t* row, int begin, int end, Fill fill) {
  if (begin >= end) return;
  const std::size_t channels = fill.size();
  std::uint8_t* to = row + static_cast<std::size_t>(begin) * channels;
  const std::size_t size = static_cast<std::size_t>(end - begin) * channels;
  if (std::ranges::count(fill, fill[0]) == static_cast<std::ptrdiff_t>(channels)) {
    std::memset(to, fill[0], size);
    return;
  }
  std::ranges::copy(fill, to);
  for (std::size_t done = channels; done < size; done *= 2) std::memcpy(to + done, to, std::min(done, size - done));
}

Image crop(const Image& image, int top, int left, ImageSize size, Fill fill) {
  check_fill(image, fill);
  Image out(size.height, size.width, image.channels);
  const int begin = std::clamp(-left, 0, size.width);
  const int end = std::clamp(image.width - left, begin, size.width);
  for (int y = 0; y < size.height; ++y) {
    std::uint8_t* to = out.row(y).data();
    const bool is_inside = top + y >= 0 && top + y < image.height;
    if (!is_inside || begin == end) {
      fill_pixels(to, 0, size.width, fill);
      continue;
    }
    const auto pixel = static_cast<std::ptrdiff_t>(image.channels);
    fill_pixels(to, 0, begin, fill);
    std::memcpy(to + begin * pixel, image.row(top + y).data() + (left + begin) * pixel,
                static_cast<std::size_t>((end - begin) * pixel));
    fill_pixels(to, end, size.width, fill);
  }
  return out;
}

Image flip_horizontal(const Image& image) {
  Image out(image.height, image.width, image.channels);
  for (int y = 0; y < image.height; ++y) {
    if (image.channels == 1) mirror_row<1>(image.row(y), out.row(y));
    if (image.channels == 3) mirror_row<3>(image.row(y), out.row(y));
    if (image.channels == 4) mirror_row<4>(image.row(y), out.row(y));
  }
  return out;
}

}  // namespace tandem
