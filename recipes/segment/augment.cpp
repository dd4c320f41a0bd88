#include "recipes/segment/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check_range.h"
#include "image/transform.h"
#include "recipes/segment/classes.h"
#include "recipes/segment/draws.h"

namespace tandem::segment {
namespace {

constexpr std::array<std::uint8_t, 3> kMeanColour = {124, 116, 104};  // of ImageNet
constexpr std::array<std::uint8_t, 1> kIgnoredLabel = {kIgnored};
constexpr std::array<std::uint8_t, 1> kNoTrust = {0};
constexpr int kBlurReach = 2;

// Pixels of the scaled and rotated image, from `begin` on.
struct Span1d {
  int begin = 0;
  int size = 0;
};

// Of a side with `size` pixels, the part that the crop shows: from 0 (first) to 1 (last), or all of a shorter side, in
// the middle.
int crop_begin(int size, int crop, double where) {
  if (size <= crop) return -(crop - size) / 2;
  return std::min(static_cast<int>(where * (size - crop + 1)), size - crop);
}

// What must be computed of a side: the part of the crop that lies in the image, and what the blur sees around it.
Span1d needed(int size, int begin, int crop, int reach) {
  const int first = std::max(begin - reach, 0);
  return {.begin = first, .size = std::min(begin + crop + reach, size) - first};
}

// One map from the pixels of the crop to those of the image, for all planes.
class AugmentMap {
 public:
  AugmentMap(const Image& image, const Augmentation& augmentation, int crop)
      : augmentation_(augmentation),
        crop_(crop),
        height_(scaled(image.height)),
        width_(scaled(image.width)),
        top_(crop_begin(height_, crop, augmentation.down)),
        left_(crop_begin(width_, crop, augmentation.across)) {
    if (augmentation.flips) left_ = width_ - crop - left_;  // in the image before it is mirrored
    const int reach = augmentation.blurs ? kBlurReach : 0;
    down_ = needed(height_, top_, crop, reach);
    across_ = needed(width_, left_, crop, reach);
    matrix_ = to_source(image);
  }

  Image apply(const Image& plane, Interpolation interpolation, Fill fill) const {
    if (plane.height == 0) return {};
    const bool blurs = augmentation_.blurs && interpolation == Interpolation::Bilinear;
    Image changed = affine(plane, matrix_, {.height = down_.size, .width = across_.size}, interpolation, fill);
    if (blurs) changed = gaussian_blur(changed, 2 * kBlurReach + 1);
    if (changed.height != crop_ || changed.width != crop_ || top_ != down_.begin || left_ != across_.begin) {
      changed = crop(changed, top_ - down_.begin, left_ - across_.begin, {.height = crop_, .width = crop_}, fill);
    }
    return augmentation_.flips ? flip_horizontal(changed) : changed;
  }

 private:
  int scaled(int size) const { return std::max(1, static_cast<int>(std::lround(size * augmentation_.scale))); }

  // From a point of the window that is computed to one of the image: rotated around the centre, then scaled.
  std::array<double, 6> to_source(const Image& image) const {
    const double angle = augmentation_.degrees * std::numbers::pi / 180;
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    const double centre_y = 0.5 * height_;
    const double centre_x = 0.5 * width_;
    const double first_y = down_.begin - centre_y;
    const double first_x = across_.begin - centre_x;
    const double by_y = image.height / static_cast<double>(height_);
    const double by_x = image.width / static_cast<double>(width_);
    return {by_x * cosine, -by_x * sine,  by_x * (cosine * first_x - sine * first_y + centre_x),
            by_y * sine,   by_y * cosine, by_y * (sine * first_x + cosine * first_y + centre_y)};
  }

  Augmentation augmentation_;
  int crop_;
  int height_;  // of the scaled image
  int width_;
  int top_;  // of the crop in it
  int left_;
  Span1d down_;  // what is computed of it
  Span1d across_;
  std::array<double, 6> matrix_ = {};
};

// Applies `change(plane, interpolation, fill)` to each.
template <class Change>
SegmentPlanes change_planes(const SegmentPlanes& planes, const Change& change) {
  return {.image = change(planes.image, Interpolation::Bilinear, Fill(kMeanColour)),
          .labels = change(planes.labels, Interpolation::Nearest, Fill(kIgnoredLabel)),
          .pseudo = change(planes.pseudo, Interpolation::Nearest, Fill(kIgnoredLabel)),
          .near_scribble = change(planes.near_scribble, Interpolation::Nearest, Fill(kNoTrust)),
          .near_contour = change(planes.near_contour, Interpolation::Nearest, Fill(kNoTrust))};
}

}  // namespace

void validate(const AugmentOptions& o) {
  check_range("scale-min", o.scale_min, 0.1, 10);
  check_range("scale-max", o.scale_max, 0.1, 10);
  if (o.scale_min > o.scale_max) {
    fail(ErrorKind::Config, str("scale-min is ", o.scale_min, ", more than scale-max, which is ", o.scale_max),
         str("give --augment.scale-max ", o.scale_min, " or more, too"));
  }
  check_range("rotate", o.rotate, 0, 180);
  check_range("rotate-share", o.rotate_share, 0, 1);
  check_range("blur-share", o.blur_share, 0, 1);
  check_range("flip-share", o.flip_share, 0, 1);
}

Augmentation draw_augmentation(std::uint64_t key, const AugmentOptions& options) {
  Draws draws(key);
  Augmentation augmentation;
  augmentation.scale = draws.from(options.scale_min, options.scale_max);
  const double degrees = draws.from(-options.rotate, options.rotate);
  augmentation.degrees = draws.from(0, 1) < options.rotate_share ? degrees : 0;
  augmentation.blurs = draws.from(0, 1) < options.blur_share;
  augmentation.flips = draws.from(0, 1) < options.flip_share;
  augmentation.down = draws.from(0, 1);
  augmentation.across = draws.from(0, 1);
  return augmentation;
}

SegmentPlanes augment(const SegmentPlanes& planes, const Augmentation& augmentation, int crop) {
  const AugmentMap map(planes.image, augmentation, crop);
  return change_planes(planes, [&](const Image& plane, Interpolation interpolation, Fill fill) {
    return map.apply(plane, interpolation, fill);
  });
}

SegmentPlanes crop_centre(const SegmentPlanes& planes, int size) {
  const ImageSize window{.height = size, .width = size};
  return change_planes(planes, [&](const Image& plane, Interpolation, Fill fill) {
    if (plane.height == 0) return Image();
    return crop(plane, (plane.height - size) / 2, (plane.width - size) / 2, window, fill);
  });
}

}  // namespace tandem::segment
