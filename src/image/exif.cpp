#include "image/exif.h"

#include <cstring>
#include <optional>

namespace tandem {
namespace {

// Numbers of a TIFF file in the byte order of that file; nothing beyond its end.
class TiffView {
 public:
  explicit TiffView(std::string_view bytes) : bytes_(bytes), is_big_endian_(bytes.starts_with("MM")) {}

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

constexpr std::size_t kEntrySize = 12;  // tag, type, count, value

std::uint32_t orientation_of_entry(const TiffView& tiff, std::size_t entry) {
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  const bool is_it = tiff.number(entry, 2) == kOrientation && tiff.number(entry + 2, 2) == kShort;
  return is_it ? tiff.number(entry + 8, 2).value_or(0) : 0;
}

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

int exif_orientation(std::string_view app1) {
  constexpr std::string_view kMark{"Exif\0\0", 6};
  if (!app1.starts_with(kMark)) return 1;
  const std::string_view bytes = app1.substr(kMark.size());
  if (!bytes.starts_with(std::string_view("II*\0", 4)) && !bytes.starts_with(std::string_view("MM\0*", 4))) return 1;
  const TiffView tiff(bytes);
  const std::size_t directory = tiff.number(4, 4).value_or(0);
  const std::uint32_t num_entries = tiff.number(directory, 2).value_or(0);
  for (std::size_t i = 0; i < num_entries; ++i) {
    const std::uint32_t found = orientation_of_entry(tiff, directory + 2 + i * kEntrySize);
    if (found >= 1 && found <= 8) return static_cast<int>(found);
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
