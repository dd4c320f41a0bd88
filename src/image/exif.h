#pragma once

#include <cstddef>
#include <string_view>

#include "image/image.h"

namespace tandem {

// The orientation, 1 to 8, that the body of an APP1 marker ("Exif\0\0", then TIFF) gives; 1 if it gives none.
int exif_orientation(std::string_view app1);

// That of the first APP1 marker of a JPEG, before its pixels, that gives another one than 1.
int jpeg_orientation(std::string_view jpeg);

// How many entries `exif_orientation` looks at: those that lie within the bytes, whatever number the file gives.
std::size_t num_exif_entries(std::string_view app1);

// The image turned or mirrored so that it is seen as meant.
Image oriented(const Image& image, int orientation);

}  // namespace tandem
