#include "image/exif.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tandem {
namespace {

// Numbers of a TIFF file in the byte order of that file; nothing beyond its end.
class TiffView {
 public:
  explicit TiffView(std::string_view bytes) : bytes_(bytes), is_big_endian_(bytes.starts_with("MM")) {}

  std::size_t size() const { return bytes_.size(); }

  std::optional<std::uint32_t> number(std::size_t at, std::size_t num_bytes) const {
    if (at > bytes_.size() || bytes_.size() - at < num_bytes) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < num_bytes; ++i) {
      const std::size_t place = is_big_endian_ ? at + i : at + num_bytes - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[place]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_big_endian_;
};

constexpr std::string_view kMark{"Exif\0\0", 6};
constexpr std::size_t kEntrySize = 12;  // tag, type, count, value

std::optional<TiffView> tiff_of(std::string_view app1) {
  if (!app1.starts_with(kMark)) return std::nullopt;
  const std::string_view bytes = app1.substr(kMark.size());
  const bool is_tiff =
      bytes.starts_with(std::string_view("II*\0", 4)) || bytes.starts_with(std::string_view("MM\0*", 4));
  return is_tiff ? std::optional(TiffView(bytes)) : std::nullopt;
}

std::size_t directory_of(const TiffView& tiff) { return tiff.number(4, 4).value_or(0); }

std::size_t num_entries(const TiffView& tiff) {
  const std::size_t directory = directory_of(tiff);
  const std::size_t said = tiff.number(directory, 2).value_or(0);
  return said == 0 ? 0 : std::min(said, (tiff.size() - directory - 2) / kEntrySize);
}

std::uint32_t orientation_of_entry(const TiffView& tiff, std::size_t entry) {
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  const bool is_it = tiff.number(entry, 2) == kOrientation && tiff.number(entry + 2, 2) == kShort;
  return is_it ? tiff.number(entry + 8, 2).value_or(0) : 0;
}

// Of JPEG: all but restarts, the beginning and end of the file, and zeros after a byte FF that is no marker.
bool has_length(int marker) { return marker >= 2 && (marker < 0xD0 || marker > 0xD9); }

// Where the pixel at the start of the output comes from, and how far one step right or down leads in the input.
struct Walk {
  std::ptrdiff_t begin;
  std::ptrdiff_t right;
  std::ptrdiff_t down;
};

Walk walk_of(const Image& image, int orientation) {
  const auto pixel = static_cast<std::ptrdiff_t>(image.channels);
  const auto row = static_cast<std::ptrdiff_t>(image.row_size());
  const std::ptrdiff_t last_in_row = row - pixel;
  const std::ptrdiff_t last_row = row * (image.height - 1);
  switch (orientation) {
    case 2: return {last_in_row, -pixel, row};
    case 3: return {last_row + last_in_row, -pixel, -row};
    case 4: return {last_row, pixel, -row};
    case 5: return {0, row, pixel};
    case 6: return {last_row, -row, pixel};
    case 7: return {last_row + last_in_row, -row, -pixel};
    case 8: return {last_in_row, row, -pixel};
    default: return {0, pixel, row};
  }
}

}  // namespace

std::size_t num_exif_entries(std::string_view app1) {
  const std::optional<TiffView> tiff = tiff_of(app1);
  return tiff ? num_entries(*tiff) : 0;
}

int exif_orientation(std::string_view app1) {
  const std::optional<TiffView> tiff = tiff_of(app1);
  if (!tiff) return 1;
  const std::size_t first = directory_of(*tiff) + 2;
  const std::size_t count = num_entries(*tiff);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t found = orientation_of_entry(*tiff, first + i * kEntrySize);
    if (found >= 1 && found <= 8) return static_cast<int>(found);
  }
  return 1;
}

int jpeg_orientation(std::string_view jpeg) {
  constexpr int kApp1 = 0xE1;
  constexpr int kScan = 0xDA;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(jpeg[at]); };
  std::size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    const int marker = byte(at + 1);
    if (byte(at) != 0xFF || marker == 0xFF || !has_length(marker)) {  // fill bytes, and what libjpeg skips
      ++at;
      continue;
    }
    if (marker == kScan) break;
    const std::size_t size = std::max<std::size_t>(2, byte(at + 2) * 256U + byte(at + 3));
    const std::string_view body = jpeg.substr(at + 4, size - 2);
    if (const int found = marker == kApp1 ? exif_orientation(body) : 1; found != 1) return found;
    at += 2 + size;
  }
  return 1;
}

Image oriented(const Image& image, int orientation) {
  const bool is_turned = orientation >= 5;
  Image out(is_turned ? image.width : image.height, is_turned ? image.height : image.width, image.channels);
  const Walk walk = walk_of(image, orientation);
  const auto pixel = static_cast<std::size_t>(image.channels);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < out.height; ++y) {
    const std::uint8_t* from = image.pixels.data() + walk.begin + y * walk.down;
    for (int x = 0; x < out.width; ++x, to += pixel) std::memcpy(to, from + x * walk.right, pixel);
  }
  return out;
}

}  // namespace tandem
