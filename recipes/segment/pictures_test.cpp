#include "recipes/segment/pictures.h"

#include <gtest/gtest.h>

#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

Image indices(std::vector<std::uint8_t> values) {
  Image image(1, static_cast<int>(values.size()), 1);
  image.pixels = std::move(values);
  return image;
}

TEST(Pictures, HaveTheColoursOfVocAndWhiteForWhatIsIgnored) {
  const Image picture = coloured(indices({0, 1, 15, kIgnored}), voc_classes().palette);
  EXPECT_EQ(picture.pixels, (std::vector<std::uint8_t>{0, 0, 0, 128, 0, 0, 192, 128, 128, 255, 255, 255}));
}

TEST(Pictures, LieHalfOverTheImageExceptWhereThereIsBackground) {
  const Image image(1, 3, 3, 100);
  const Image picture = overlay(image, indices({0, 1, kIgnored}), voc_classes().palette);
  EXPECT_EQ(picture.pixels, (std::vector<std::uint8_t>{100, 100, 100, 114, 50, 50, 100, 100, 100}));
}

TEST(Pictures, OfDifferentSizesStandInAGrid) {
  const Image sheet = contact_sheet({{Image(2, 3, 3, 1), Image(4, 2, 3, 2)}, {Image(1, 1, 3, 3)}});
  EXPECT_EQ(sheet.height, 2 * (4 + 4) + 4);
  EXPECT_EQ(sheet.width, 2 * (3 + 4) + 4);
  EXPECT_EQ(sheet.at(4, 4), 1);
  EXPECT_EQ(sheet.at(4, 4 + 7), 2);
  EXPECT_EQ(sheet.at(4 + 8, 4), 3);
  EXPECT_EQ(sheet.at(4 + 8, 4 + 7), 255);
}

}  // namespace
}  // namespace tandem::segment
