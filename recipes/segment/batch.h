#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/deeplab/pixel_losses.h"
#include "recipes/segment/samples.h"

namespace tandem::segment {

// Samples of one size, as bytes: they become numbers on the device.
struct SegmentBatch {
  torch::Tensor images;  // (batch, height, width, 3)
  PixelTargets targets;  // (batch, height, width) each; undefined: not read

  // Padding of the last step does not count: from this sample on, no pixel has a label or a weight.
  void leave_out_from(std::int64_t num_counted) const;

  PixelTargets targets_on(torch::Device device) const;
};

// In pinned memory if it goes to a GPU.
SegmentBatch make_batch(std::vector<SegmentPlanes>&& samples, bool pin);

// RGB bytes (batch, height, width, 3) as the input of a network on that device: (batch, 3, height, width), normalized
// by the mean and deviation of ImageNet, in channels-last memory.
torch::Tensor normalized(const torch::Tensor& images, torch::Device device, torch::ScalarType type = torch::kFloat);

}  // namespace tandem::segment
