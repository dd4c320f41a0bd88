#pragma once

#include <tandem/tensorboard.h>

#include <string>

namespace tandem {

// The image as a PNG file whose pixels are stored, not compressed: a few lines in place of a library, for files a
// little larger than their pixels. An Error of kind Data when the pixels are not height x width x channels.
std::string png_of(const ImageView& image);

}  // namespace tandem
