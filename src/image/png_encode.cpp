#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.h"
#include "image/byte_sink.h"
#include "image/codec.h"
#include "image/png_steps.h"

namespace tandem {
namespace {

constexpr std::size_t kMostColours = 256;

void write_bytes(png_structp png, png_bytep bytes, std::size_t count) {
  auto* file = static_cast<std::string*>(png_get_io_ptr(png));
  if (!append_bytes(*file, bytes, count)) png_error(png, "out of memory");
}

void write_nothing(png_structp) {}

int colour_type(const Image& image, bool has_palette) {
  if (has_palette) return PNG_COLOR_TYPE_PALETTE;
  if (image.channels == 1) return PNG_COLOR_TYPE_GRAY;
  return image.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGB_ALPHA;
}

class PngWriter {
 public:
  explicit PngWriter(std::string& file)
      : png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, give_up_png, ignore_warning)),
        info_(png_ != nullptr ? png_create_info_struct(png_) : nullptr) {
    if (info_ != nullptr) png_set_write_fn(png_, &file, write_bytes, write_nothing);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  void write(const Image& image, std::span<const std::uint8_t> palette) {
    std::array<png_color, kMostColours> colours{};
    for (std::size_t i = 0; i < palette.size() / 3; ++i) {
      colours.at(i) = {palette[3 * i], palette[3 * i + 1], palette[3 * i + 2]};
    }
    const bool is_written =
        info_ != nullptr && run_step(errors_, [&] {
          png_set_IHDR(png_, info_, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8,
                       colour_type(image, !palette.empty()), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                       PNG_FILTER_TYPE_DEFAULT);
          if (!palette.empty()) png_set_PLTE(png_, info_, colours.data(), static_cast<int>(palette.size() / 3));
          png_write_info(png_, info_);
          for (int y = 0; y < image.height; ++y) png_write_row(png_, image.row(y).data());
          png_write_end(png_, info_);
        });
    if (!is_written) {
      fail(ErrorKind::Data, str("cannot write a PNG: ", errors_.message.data()), "is there memory left?");
    }
  }

 private:
  PngErrors errors_;
  png_structp png_;
  png_infop info_;
};

void check_palette(const Image& image, std::span<const std::uint8_t> palette) {
  if (palette.empty()) return;
  const std::size_t num_colours = palette.size() / 3;
  if (image.channels != 1 || palette.size() % 3 != 0 || num_colours > kMostColours) {
    fail(ErrorKind::Data, str("a palette of ", palette.size(), " bytes for an image of ", image.channels, " channels"),
         "give three bytes for each of at most 256 colours, and an image of one channel");
  }
  const int largest = *std::max_element(image.pixels.begin(), image.pixels.end());
  if (largest < static_cast<int>(num_colours)) return;
  fail(ErrorKind::Data, str("an image has the index ", largest, ", and its palette ", num_colours, " colours"),
       "give a colour for each index");
}

}  // namespace

std::string encode_png(const Image& image, std::span<const std::uint8_t> palette) {
  check_image(image);
  check_palette(image, palette);
  std::string file;
  PngWriter(file).write(image, palette);
  return file;
}

}  // namespace tandem
