#pragma once

#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/deeplab/pixel_losses.h"
#include "recipes/segment/samples.h"

namespace tandem::segment {

// Samples of one size, as bytes: they become numbers on the device.
struct SegmentBatch {
  torch::Tensor images;  // (batch, height, width, 3)
  PixelTargets targets;  // (batch, height, width) each; undefined: not read

  // Padding of the last step does not count: from this sample on, no pixel has a label or a weight.
  void leave_out_from(std::int64_t num_counted);

  PixelTargets targets_on(torch::Device device) const;
};

// In pinned memory if it goes to a GPU.
SegmentBatch make_batch(std::vector<SegmentPlanes>&& samples, bool pin);

// The function of a Loader that makes them.
inline auto batch_maker(torch::Device device) {
  return [pin = device.is_cuda()](std::vector<SegmentPlanes>&& samples) { return make_batch(std::move(samples), pin); };
}

// Pixels as uint8 (height, width, channels), and class indices (height, width) as an image.
torch::Tensor tensor_of(const Image& image);
Image index_image(const torch::Tensor& classes);

// RGB bytes (batch, height, width, 3) as the input of a network on that device: (batch, 3, height, width), normalized
// by the mean and deviation of ImageNet, in channels-last memory.
torch::Tensor normalized(const torch::Tensor& images, torch::Device device, torch::ScalarType type = torch::kFloat);

}  // namespace tandem::segment
