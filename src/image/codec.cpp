#include "image/codec.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"
#include "image/decoders.h"

namespace tandem {
namespace {

enum class Format { Jpeg, Png };

// Formats that are often met and not read; empty: none of these.
std::string_view other_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("RIFF") && bytes.substr(std::min(bytes.size(), std::size_t{8})).starts_with("WEBP"))
    return "WebP";
  if (bytes.starts_with("GIF8")) return "GIF";
  if (bytes.starts_with("BM")) return "BMP";
  if (bytes.starts_with("II*\0"sv) || bytes.starts_with("MM\0*"sv)) return "TIFF";
  return "";
}

Format format_of(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xFF\xD8\xFF")) return Format::Jpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return Format::Png;
  if (bytes.empty()) fail(ErrorKind::Data, str(name, " is empty"), "copy it again, or take it out of the data");
  const std::string_view other = other_format(bytes);
  fail(ErrorKind::Data,
       str(name, " is neither a JPEG nor a PNG",
           other.empty() ? str(": it begins with '", hex_text(bytes.substr(0, 4)), "'")
                         : str(", but a ", other, " file")),
       "convert it to one of the two, or take it out of the data");
}

}  // namespace

Image decode_image(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  const bool is_jpeg = format_of(bytes, name) == Format::Jpeg;
  return is_jpeg ? decode_jpeg(bytes, name, options) : decode_png(bytes, name, options);
}

Image read_image(const std::filesystem::path& path, const DecodeOptions& options) {
  return decode_image(read_regular_file(path), path.string(), options);
}

ImageHeader decode_image_header(std::string_view bytes, const std::string& name) {
  const bool is_jpeg = format_of(bytes, name) == Format::Jpeg;
  return is_jpeg ? decode_jpeg_header(bytes, name) : decode_png_header(bytes, name);
}

ImageHeader read_image_header(const std::filesystem::path& path) {
  return decode_image_header(read_regular_file(path), path.string());
}

void check_num_pixels(std::int64_t height, std::int64_t width, std::int64_t most_pixels, const std::string& name) {
  if (std::max(height, width) <= kMostSide && height * width <= most_pixels) return;
  fail(ErrorKind::Data,
       str(name, " is an image of ", width, " x ", height, " pixels, and at most ", most_pixels,
           " are read, with sides of at most ", kMostSide),
       "make it smaller, or take it out of the data");
}

Image grey_of_rgb(const Image& image) {
  constexpr int kRed = 19'595;  // of 65,536
  constexpr int kGreen = 38'470;
  constexpr int kBlue = 7'471;
  Image grey(image.height, image.width, 1);
  const std::uint8_t* in = image.pixels.data();
  for (std::uint8_t& out : grey.pixels) {
    out = static_cast<std::uint8_t>((in[0] * kRed + in[1] * kGreen + in[2] * kBlue + 0x8000) >> 16);
    in += 3;
  }
  return grey;
}

}  // namespace tandem
