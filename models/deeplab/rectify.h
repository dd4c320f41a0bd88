#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/deeplab/sum_and_count.h"

namespace tandem {

struct Rectification {
  torch::Tensor features;            // (batch, positions, channels)
  torch::Tensor query;               // (foreground positions of all images, channels)
  torch::Tensor key;                 // (batch, positions, channels)
  torch::Tensor gamma;               // (1)
  torch::Tensor rows;                // the foreground positions, ascending: image * positions + position
  std::vector<std::int64_t> counts;  // of foreground positions in each image
};

// The sum of (x - y)^2 and the number of terms that are not 0, where y_i = gamma * sum_j softmax_j(cos(q_i, k_j)) x_j
// at foreground positions i and 0 elsewhere; in float, or in double. The attention matrix exists for some rows of one
// image at a time and is computed again in the backward pass. A query or key of 0 has the cosine 0 to all others.
// Double backward is an Error.
SumAndCount rectification(const Rectification& given);

}  // namespace tandem
