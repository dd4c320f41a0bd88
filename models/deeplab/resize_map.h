#pragma once

#include <torch/types.h>

namespace tandem {

// Resizes (batch, channels, height, width) bilinearly to the height and width of another tensor, as torch does. The
// gradient is a product of matrices: on a GPU, torch's own adds in an order that changes from run to run, and takes
// five times as long. Double backward is an Error.
torch::Tensor resized_like(const torch::Tensor& map, const torch::Tensor& other, bool align_corners);

}  // namespace tandem
