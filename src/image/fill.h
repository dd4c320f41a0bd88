#pragma once

#include "image/transform.h"

namespace tandem {

// An Error unless there is a value for each channel.
void check_fill(const Image& image, Fill fill);

// Gives that value to the pixels from begin to end of a row.
void fill_pixels(std::uint8_t* row, int begin, int end, Fill fill);

}  // namespace tandem
