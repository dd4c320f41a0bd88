#include "recipes/segment/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/temp_test.h"
#include "image/codec.h"
#include "recipe/content_key.h"
#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

double share(const Image& image, std::uint8_t value) {
  return static_cast<double>(std::ranges::count(image.pixels, value)) / static_cast<double>(image.pixels.size());
}

// If it must change: every number that was measured on these images changes too.
TEST(Shapes, AreTheSameForEver) {
  const ShapesSample sample = make_shapes(ShapesSet::Train, 3);
  std::string pixels;
  for (const Image* plane : {&sample.image, &sample.mask, &sample.scribble, &sample.pseudo}) {
    pixels.append(plane->pixels.begin(), plane->pixels.end());
  }
  EXPECT_EQ(content_key(pixels), "3319683398948866431-4231252797");
  EXPECT_NE(make_shapes(ShapesSet::Valid, 3).image, sample.image);
  EXPECT_EQ(make_shapes(ShapesSet::Train, 3).image, sample.image);
}

TEST(Shapes, LeaveMostOfTheImageToTheBackground) {
  std::array<double, 4> shares = {};
  double scribbled = 0;
  for (int i = 0; i < 200; ++i) {
    const ShapesSample sample = make_shapes(ShapesSet::Valid, i);
    for (std::size_t c = 0; c < 4; ++c) shares[c] += share(sample.mask, static_cast<std::uint8_t>(c)) / 200;
    scribbled += (1 - share(sample.scribble, kIgnored)) / 200;
  }
  EXPECT_NEAR(shares[0], 0.88, 0.03);
  for (std::size_t c = 1; c < 4; ++c) EXPECT_NEAR(shares[c], 0.04, 0.02) << c;
  EXPECT_NEAR(scribbled, 0.03, 0.005);
}

TEST(Shapes, HaveScribblesThatAreRightOnEveryClass) {
  for (int i = 0; i < 200; ++i) {
    const ShapesSample sample = make_shapes(ShapesSet::Train, i);
    std::set<int> drawn;
    for (std::size_t p = 0; p < sample.mask.pixels.size(); ++p) {
      const std::uint8_t label = sample.scribble.pixels[p];
      if (label == kIgnored) continue;
      ASSERT_EQ(label, sample.mask.pixels[p]) << i;
      drawn.insert(label);
    }
    const std::set<int> seen(sample.mask.pixels.begin(), sample.mask.pixels.end());
    EXPECT_EQ(drawn, seen) << i;
  }
}

// One shape in ten is missing, and the others are of a wrong size.
TEST(Shapes, HavePseudoLabelsWithErrors) {
  int num_missing = 0;
  double num_wrong = 0;
  for (int i = 0; i < 500; ++i) {
    const ShapesSample sample = make_shapes(ShapesSet::Train, i);
    for (std::uint8_t kind = 1; kind < 4; ++kind) {
      num_missing += share(sample.mask, kind) > 0 && share(sample.pseudo, kind) == 0 ? 1 : 0;
    }
    for (std::size_t p = 0; p < sample.mask.pixels.size(); ++p) {
      num_wrong += sample.mask.pixels[p] != sample.pseudo.pixels[p] ? 1 : 0;
    }
  }
  EXPECT_GT(num_missing, 40);  // of about 800 kinds in an image
  EXPECT_LT(num_missing, 120);
  EXPECT_NEAR(num_wrong / (500 * 96 * 96), 0.045, 0.015);
}

TEST(Shapes, AreWrittenAsAFolder) {
  const TempFolder temporary;
  const std::filesystem::path folder = temporary.path() + "/shapes";
  write_shapes(folder, {.train = 2, .valid = 1});
  const ShapesSample sample = make_shapes(ShapesSet::Train, 1);
  const auto stored = [&](const char* name) { return read_image(folder / name, {.kind = PixelKind::Indices}); };
  EXPECT_EQ(stored("SegmentationClassAug/train_1.png"), sample.mask);
  EXPECT_EQ(stored("pascal_2012_scribble/train_1.png"), sample.scribble);
  EXPECT_EQ(stored("bmp_ws_train_aug_dataset/train_1.png"), sample.pseudo);
  EXPECT_EQ(stored("SegmentationClassAug/valid_0.png"), make_shapes(ShapesSet::Valid, 0).mask);
  EXPECT_FALSE(std::filesystem::exists(folder / "pascal_2012_scribble/valid_0.png"));
  const Image image = read_image(folder / "JPEGImages/train_1.jpg");
  int worst = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    worst = std::max(worst, std::abs(image.pixels[i] - sample.image.pixels[i]));
  EXPECT_LT(worst, 120);  // colours are stored at half the resolution
  EXPECT_EQ(image.channels, 3);
}

}  // namespace
}  // namespace tandem::segment
