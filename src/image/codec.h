#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "image/image.h"

namespace tandem {

// What the pixels of a file become.
enum class PixelKind {
  Rgb,      // 3 channels: grey is repeated, a palette is looked up, alpha is dropped, 16 bits become the upper 8
  Grey,     // 1 channel; colour by Pillow's formula of convert("L")
  Indices,  // 1 channel: the palette index or grey value of a PNG as it is stored, for masks; all else is an Error
};

struct DecodeOptions {
  PixelKind kind = PixelKind::Rgb;
  // A JPEG whose shorter side stays at least this long may be decoded at 1/2, 1/4 or 1/8 of its size (the scaling of
  // its inverse DCT), as Pillow's draft mode; 0: at full size.
  int least_side = 0;
  bool orient = true;  // a JPEG: as EXIF says
  // A file with more is an Error; nothing is allocated for its pixels.
  std::int64_t most_pixels = kMostPixels;
};

// A JPEG or PNG, recognised by its first bytes. An Error of kind Data names `name`, what is wrong, and what to do. A
// file that ends too early, or is damaged where it matters for the pixels, is an Error too.
Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options = {});
Image read_image(const std::filesystem::path& path, const DecodeOptions& options = {});

// Height, width and channels as stored (before EXIF orientation; a palette is one channel), from the header alone.
struct ImageHeader {
  int height = 0;
  int width = 0;
  int channels = 0;
};
ImageHeader decode_image_header(std::string_view bytes, const std::string& name);
ImageHeader read_image_header(const std::filesystem::path& path);

// A compressed PNG: grey, RGB or RGBA by the number of channels. With a palette (RGB triples, at most 256) a
// one-channel image becomes a palette PNG that keeps its indices.
std::string encode_png(const Image& image, std::span<const std::uint8_t> palette = {});

// A baseline JPEG of a grey or RGB image, with 4:2:0 subsampling, as Pillow's default. Quality: 1 to 100.
std::string encode_jpeg(const Image& image, int quality = 75);

}  // namespace tandem
