#include "recipes/segment/augment.h"

#include <gtest/gtest.h>
#include <tandem/random_key.h>

#include <cmath>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "image/transform.h"
#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

Image random_image(int height, int width, int channels, std::uint64_t seed, std::uint64_t values) {
  Image image(height, width, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<std::uint8_t>(random_key(seed, Draw::Synthetic, i) % values);
  }
  return image;
}

SegmentPlanes random_planes(int height, int width) {
  return {.image = random_image(height, width, 3, 1, 256),
          .labels = random_image(height, width, 1, 2, 21),
          .pseudo = random_image(height, width, 1, 3, 21),
          .near_scribble = random_image(height, width, 1, 4, 256),
          .near_contour = random_image(height, width, 1, 5, 256)};
}

TEST(Augment, WithoutAChangeCutsOutAPart) {
  const SegmentPlanes planes = random_planes(40, 50);
  const SegmentPlanes out = augment(planes, {.down = 0, .across = 0.999999}, 32);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      ASSERT_EQ(out.labels.at(y, x), planes.labels.at(y, x + 18));
      ASSERT_EQ(out.image.at(y, x, 2), planes.image.at(y, x + 18, 2));
      ASSERT_EQ(out.near_contour.at(y, x), planes.near_contour.at(y, x + 18));
    }
  }
  EXPECT_EQ(augment(planes, {.down = 0.5, .across = 0.5}, 32).labels, crop_centre(planes, 32).labels);
}

TEST(Augment, PadsWhatLiesBeyondTheImage) {
  const SegmentPlanes planes = random_planes(6, 8);
  for (const SegmentPlanes& out : {augment(planes, {}, 10), crop_centre(planes, 10)}) {
    EXPECT_EQ(out.image.at(0, 0, 0), 124);
    EXPECT_EQ(out.image.at(0, 0, 1), 116);
    EXPECT_EQ(out.image.at(0, 0, 2), 104);
    EXPECT_EQ(out.labels.at(9, 9), kIgnored);
    EXPECT_EQ(out.pseudo.at(9, 9), kIgnored);
    EXPECT_EQ(out.near_scribble.at(9, 9), 0);
    EXPECT_EQ(out.near_contour.at(9, 9), 0);
    EXPECT_EQ(out.labels.at(2, 1), planes.labels.at(0, 0));
    EXPECT_EQ(out.near_scribble.at(7, 8), planes.near_scribble.at(5, 7));
  }
}

TEST(Augment, ScalesLabelsToTheNearestPixel) {
  const SegmentPlanes planes = random_planes(12, 10);
  const Image out = augment(planes, {.scale = 2}, 24).labels;
  for (int y = 0; y < 24; ++y) {
    for (int x = 0; x < 20; ++x) ASSERT_EQ(out.at(y, x + 2), planes.labels.at(y / 2, x / 2)) << y << ' ' << x;
  }
  EXPECT_EQ(out.at(0, 1), kIgnored);
}

TEST(Augment, RotatesCounterClockwise) {
  const SegmentPlanes planes = random_planes(9, 9);
  const SegmentPlanes out = augment(planes, {.degrees = 90}, 9);
  for (int y = 0; y < 9; ++y) {
    for (int x = 0; x < 9; ++x) {
      ASSERT_EQ(out.labels.at(y, x), planes.labels.at(x, 8 - y));
      ASSERT_EQ(out.image.at(y, x, 1), planes.image.at(x, 8 - y, 1));
    }
  }
}

// Only a part is computed, and yet it is that part of the whole: what the blur mirrors at the edges of the image, too.
TEST(Augment, BlursAndMirrorsAsIfTheWholeImageWere) {
  const SegmentPlanes planes = random_planes(40, 50);
  const Image whole = flip_horizontal(gaussian_blur(planes.image, 5));
  const Image labels = flip_horizontal(planes.labels);
  const std::array<std::uint8_t, 3> mean = {124, 116, 104};
  const std::array<std::uint8_t, 1> ignored = {kIgnored};
  for (const double where : {0.0, 0.3, 0.7, 0.999}) {
    const SegmentPlanes out = augment(planes, {.blurs = true, .flips = true, .down = where, .across = where}, 31);
    const int top = static_cast<int>(where * 10);
    const int left = static_cast<int>(where * 20);
    EXPECT_EQ(out.image, crop(whole, top, left, {31, 31}, mean)) << where;
    EXPECT_EQ(out.labels, crop(labels, top, left, {31, 31}, ignored)) << where;
  }
  const SegmentPlanes wide = augment(planes, {.blurs = true, .flips = true}, 60);
  EXPECT_EQ(wide.image, crop(whole, -10, -5, {60, 60}, mean));
}

// Each class has a colour of its own, so that the image shows whether labels lie where they belong.
TEST(Augment, KeepsLabelsOnTheirPixels) {
  SegmentPlanes planes{.image = Image(80, 90, 3), .labels = Image(80, 90, 1)};
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 90; ++x) {
      const int label = (y / 20 + x / 30) % 2;
      planes.labels.row(y)[x] = static_cast<std::uint8_t>(label);
      for (int c = 0; c < 3; ++c) planes.image.row(y)[3 * x + c] = static_cast<std::uint8_t>(20 + 200 * label);
    }
  }
  for (std::uint64_t key = 0; key < 50; ++key) {
    const SegmentPlanes out = augment(planes, draw_augmentation(mix_bits(key), {}), 65);
    int num_wrong = 0;
    for (int y = 0; y < 65; ++y) {
      for (int x = 0; x < 65; ++x) {
        const int wanted = out.labels.at(y, x) == kIgnored ? 124 : 20 + 200 * out.labels.at(y, x);
        num_wrong += std::abs(out.image.at(y, x) - wanted) > 110 ? 1 : 0;
      }
    }
    EXPECT_LT(num_wrong, 45) << key;  // of 4225: rounding at the borders
  }
}

TEST(Augment, DrawsFromTheRangesOfTheOptions) {
  double scale = 0;
  double rotated = 0;
  double blurred = 0;
  double flipped = 0;
  for (std::uint64_t key = 0; key < 2000; ++key) {
    const Augmentation drawn = draw_augmentation(mix_bits(key), {});
    ASSERT_GE(drawn.scale, 0.5);
    ASSERT_LE(drawn.scale, 2);
    ASSERT_LE(std::abs(drawn.degrees), 10);
    scale += drawn.scale / 2000;
    rotated += drawn.degrees != 0 ? 1 : 0;
    blurred += drawn.blurs ? 1 : 0;
    flipped += drawn.flips ? 1 : 0;
  }
  EXPECT_NEAR(scale, 1.25, 0.03);
  for (const double count : {rotated, blurred, flipped}) EXPECT_NEAR(count, 1000, 80);
}

TEST(Augment, CanBeTurnedOff) {
  const AugmentOptions off{
      .scale_min = 1, .scale_max = 1, .rotate = 0, .rotate_share = 1, .blur_share = 0, .flip_share = 0};
  const Augmentation drawn = draw_augmentation(7, off);
  EXPECT_EQ(drawn, (Augmentation{.down = drawn.down, .across = drawn.across}));
  EXPECT_EQ(missing_facts(error_of([] { validate(AugmentOptions{.scale_min = 3}); }), ErrorKind::Config,
                          {"scale-min is 3", "scale-max, which is 2", "--augment.scale-max 3"}),
            "");
}

}  // namespace
}  // namespace tandem::segment
