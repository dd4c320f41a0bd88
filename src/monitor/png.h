#pragma once

#include "monitor/tensorboard.h"

#include <string>

namespace tandem {

// The image as an uncompressed PNG file. An Error of kind Data if the number of pixels is not height x width x
// channels.
std::string png_of(const ImageView& image);

}  // namespace tandem
