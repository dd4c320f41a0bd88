#pragma once

#include <cstdint>

#include "recipes/segment/planes.h"

namespace tandem::segment {

// The random changes of a training image, those of the guide by default. Each can be turned off.
struct AugmentOptions {
  double scale_min = 0.5;
  double scale_max = 2;
  double rotate = 10;
  double rotate_share = 0.5;
  double blur_share = 0.5;
  double flip_share = 0.5;
};

template <class Visitor>
void visit_fields(AugmentOptions& o, Visitor&& field) {
  field("scale-min", o.scale_min, "least factor by which an image is scaled");
  field("scale-max", o.scale_max, "greatest factor by which an image is scaled");
  field("rotate", o.rotate, "greatest angle by which an image is rotated, in degrees");
  field("rotate-share", o.rotate_share, "share of the images that are rotated");
  field("blur-share", o.blur_share, "share of the images that are blurred, by a 5 x 5 Gaussian");
  field("flip-share", o.flip_share, "share of the images that are mirrored");
}
void validate(const AugmentOptions& options);

// What is done to one image, in this order.
struct Augmentation {
  double scale = 1;
  double degrees = 0;  // counter-clockwise
  bool blurs = false;
  bool flips = false;
  double down = 0.5;  // where the crop lies: 0 at the upper edge, 1 at the lower one
  double across = 0.5;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

// Depends on the key alone.
Augmentation draw_augmentation(std::uint64_t key, const AugmentOptions& options);

// Scaled, rotated, blurred, mirrored and cut out, crop x crop pixels. The image is interpolated and the other planes
// are not. Beyond the image there is the mean colour of ImageNet, labels are ignored, and maps are 0 (not to be
// trusted).
SegmentPlanes augment(const SegmentPlanes& planes, const Augmentation& augmentation, int crop);

// The centre, of size x size pixels, padded in the same way.
SegmentPlanes crop_centre(const SegmentPlanes& planes, int size);

}  // namespace tandem::segment
