#include "recipes/segment/confusion.h"

#include <gtest/gtest.h>

#include "base/error_facts_test.h"
#include "base/error_test.h"
#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

Image row_of(std::vector<std::uint8_t> pixels) {
  Image image(1, static_cast<int>(pixels.size()), 1);
  image.pixels = std::move(pixels);
  return image;
}

// Classes 0, 1, 2 and 3, of which 3 does not occur. Class 0: 2 right, 1 taken for 1. Class 1: 1 right, 1 not predicted.
// Class 2: 0 right, 1 taken for 0.
TEST(Confusion, CountsPixelsByHand) {
  ConfusionCounts counts(4);
  add_pixels(counts, row_of({0, 0, 0, 1, 255, 255}), row_of({0, 0, 1, 1, 0, 3}));
  add_pixels(counts, row_of({1, 2}), row_of({kIgnored, 0}));
  EXPECT_EQ(counts.at(0, 0), 2);
  EXPECT_EQ(counts.at(0, 1), 1);
  EXPECT_EQ(counts.at(1, 1), 1);
  EXPECT_EQ(counts.at(1, 4), 1);
  EXPECT_EQ(counts.at(2, 0), 1);
  EXPECT_EQ(counts.at(0, 3), 0);

  const SegmentScores scores = score_counts(counts);
  EXPECT_EQ(scores.pixels, 6);
  EXPECT_EQ(scores.iou[0], 0.5);      // 2 of 2 + 1 + 1
  EXPECT_EQ(scores.iou[1], 1.0 / 3);  // 1 of 1 + 1 + 1
  EXPECT_EQ(scores.iou[2], 0.0);
  EXPECT_EQ(scores.iou[3], std::nullopt);
  EXPECT_DOUBLE_EQ(scores.mean_iou, (0.5 + 1.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(scores.mean_iou_all, (0.5 + 1.0 / 3) / 4);
  EXPECT_EQ(scores.pixel_accuracy, 0.5);
}

TEST(Confusion, OfNothingIsZero) {
  const SegmentScores scores = score_counts(ConfusionCounts(2));
  EXPECT_EQ(scores.mean_iou, 0);
  EXPECT_EQ(scores.pixel_accuracy, 0);
}

TEST(Confusion, OfDifferentSizesIsAnError) {
  ConfusionCounts counts(2);
  EXPECT_EQ(missing_facts(error_of([&] {
                            add_pixels(counts, row_of({0}), row_of({0, 1}));
                          }),
                          ErrorKind::Data, {"1 true", "2 predicted"}),
            "");
}

}  // namespace
}  // namespace tandem::segment
