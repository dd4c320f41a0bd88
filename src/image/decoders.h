#pragma once

#include <string>
#include <string_view>

#include "image/codec.h"

namespace tandem {

Image decode_jpeg(std::string_view bytes, const std::string& name, const DecodeOptions& options);
Image decode_png(std::string_view bytes, const std::string& name, const DecodeOptions& options);
ImageHeader decode_jpeg_header(std::string_view bytes, const std::string& name);
ImageHeader decode_png_header(std::string_view bytes, const std::string& name);

// An Error that names the file if it has more pixels than that.
void check_num_pixels(std::int64_t height, std::int64_t width, std::int64_t most_pixels, const std::string& name);

// Colour to one channel by Pillow's formula.
Image grey_of_rgb(const Image& image);

}  // namespace tandem
