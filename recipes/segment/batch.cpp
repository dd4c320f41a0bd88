#include "recipes/segment/batch.h"

#include <cstring>

#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

// One plane of all samples; undefined if the first has none.
Tensor stack_plane(const std::vector<SegmentPlanes>& samples, Image SegmentPlanes::*plane, bool pin) {
  const Image& first = samples.front().*plane;
  if (first.pixels.empty()) return {};
  std::vector<std::int64_t> sizes = {std::ssize(samples), first.height, first.width};
  if (first.channels > 1) sizes.push_back(first.channels);
  Tensor all = torch::empty(sizes, torch::TensorOptions(torch::kUInt8).pinned_memory(pin));
  auto* next = all.mutable_data_ptr<std::uint8_t>();
  for (const SegmentPlanes& sample : samples) {
    const auto& pixels = (sample.*plane).pixels;
    std::memcpy(next, pixels.data(), pixels.size());
    next += pixels.size();
  }
  return all;
}

Tensor moved(const Tensor& plane, torch::Device device) {
  return plane.defined() ? plane.to(device, /*non_blocking=*/true) : plane;
}

}  // namespace

SegmentBatch make_batch(std::vector<SegmentPlanes>&& samples, std::int64_t num_counted, bool pin) {
  const std::vector<SegmentPlanes> all = std::move(samples);
  const auto plane = [&](Image SegmentPlanes::*member, std::uint8_t padding) {
    Tensor stacked = stack_plane(all, member, pin);
    if (stacked.defined()) stacked.slice(0, num_counted).fill_(padding);
    return stacked;
  };
  return {.images = stack_plane(all, &SegmentPlanes::image, pin),
          .targets = {.labels = plane(&SegmentPlanes::labels, kIgnored),
                      .pseudo = plane(&SegmentPlanes::pseudo, kIgnored),
                      .near_scribble = plane(&SegmentPlanes::near_scribble, 0),
                      .near_contour = plane(&SegmentPlanes::near_contour, 0)}};
}

Tensor tensor_of(const Image& image) {
  Tensor pixels = torch::empty({image.height, image.width, image.channels}, torch::kUInt8);
  std::memcpy(pixels.mutable_data_ptr<std::uint8_t>(), image.pixels.data(), image.pixels.size());
  return pixels;
}

Image index_image(const Tensor& classes) {
  const Tensor bytes = classes.to(torch::kUInt8).cpu().contiguous();
  Image image(static_cast<int>(bytes.size(0)), static_cast<int>(bytes.size(1)), 1);
  std::memcpy(image.pixels.data(), bytes.const_data_ptr<std::uint8_t>(), image.pixels.size());
  return image;
}

PixelTargets SegmentBatch::targets_on(torch::Device device) const {
  return {.labels = moved(targets.labels, device),
          .pseudo = moved(targets.pseudo, device),
          .near_scribble = moved(targets.near_scribble, device),
          .near_contour = moved(targets.near_contour, device)};
}

Tensor normalized(const Tensor& images, torch::Device device, torch::ScalarType type) {
  const auto options = torch::TensorOptions(type == torch::kDouble ? type : torch::kFloat).device(device);
  const Tensor mean = torch::tensor({123.675, 116.28, 103.53}, options);
  const Tensor deviation = torch::tensor({58.395, 57.12, 57.375}, options);
  return moved(images, device).to(mean.scalar_type()).sub_(mean).div_(deviation).to(type).permute({0, 3, 1, 2});
}

}  // namespace tandem::segment
