#pragma once

#include <string_view>

#include "image/image.h"

namespace tandem {

// The orientation, 1 to 8, that the body of an APP1 marker ("Exif\0\0", then TIFF) gives; 1 if it gives none.
int exif_orientation(std::string_view app1);

// The image turned or mirrored so that it is seen as meant.
Image oriented(const Image& image, int orientation);

}  // namespace tandem
