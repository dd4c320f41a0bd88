#pragma once

#include <tandem/dataset.h>
#include <tandem/train_step.h>
#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/deeplab/pixel_losses.h"
#include "recipes/segment/losses.h"
#include "recipes/segment/samples.h"

namespace tandem::segment {

// Samples of one size, as bytes: they become numbers on the device.
struct SegmentBatch {
  torch::Tensor images;  // (batch, height, width, 3)
  PixelTargets targets;  // (batch, height, width) each; undefined: not read
  std::vector<KnownCount> counts = {};

  PixelTargets targets_on(torch::Device device) const;
};

// In pinned memory if it goes to a GPU. From the sample `num_counted` on, which is padding, no pixel has a label or a
// weight.
SegmentBatch make_batch(std::vector<SegmentPlanes>&& samples, std::int64_t num_counted, bool pin);

// The function of a Loader that makes them: for evaluation, and for training with that loss.
inline auto batch_maker(torch::Device device) {
  return [pin = device.is_cuda()](std::vector<SegmentPlanes>&& samples, const BatchFacts& facts) {
    return make_batch(std::move(samples), facts.samples.num_counted, pin);
  };
}
inline auto batch_maker(torch::Device device, const LossOptions& loss) {
  return [make = batch_maker(device), loss](std::vector<SegmentPlanes>&& samples, const BatchFacts& facts) {
    SegmentBatch batch = make(std::move(samples), facts);
    batch.counts = known_counts(loss, batch.targets);
    return batch;
  };
}

// Pixels as uint8 (height, width, channels), and class indices (height, width) as an image.
torch::Tensor tensor_of(const Image& image);
Image index_image(const torch::Tensor& classes);

// RGB bytes (batch, height, width, 3) as the input of a network on that device: (batch, 3, height, width), normalized
// by the mean and deviation of ImageNet, in channels-last memory.
torch::Tensor normalized(const torch::Tensor& images, torch::Device device, torch::ScalarType type = torch::kFloat);

}  // namespace tandem::segment
