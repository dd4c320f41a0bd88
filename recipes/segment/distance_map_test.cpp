#include "recipes/segment/distance_map.h"

#include <gtest/gtest.h>
#include <tandem/random_key.h>

#include <algorithm>
#include <cmath>

#include "recipes/segment/classes.h"

namespace tandem::segment {
namespace {

Image random_sources(int height, int width, std::uint64_t seed, std::uint64_t one_in) {
  Image sources(height, width, 1);
  for (std::size_t i = 0; i < sources.pixels.size(); ++i) {
    sources.pixels[i] = random_key(seed, Draw::Synthetic, i) % one_in == 0 ? 1 : 0;
  }
  return sources;
}

std::int32_t nearest_squared(const Image& sources, int y, int x, int limit) {
  std::int32_t least = limit * limit;
  for (int v = 0; v < sources.height; ++v) {
    for (int u = 0; u < sources.width; ++u) {
      if (sources.at(v, u) != 0) least = std::min(least, (v - y) * (v - y) + (u - x) * (u - x));
    }
  }
  return least;
}

std::vector<std::int32_t> brute_force(const Image& sources, int limit) {
  std::vector<std::int32_t> squared;
  for (int y = 0; y < sources.height; ++y) {
    for (int x = 0; x < sources.width; ++x) squared.push_back(nearest_squared(sources, y, x, limit));
  }
  return squared;
}

TEST(DistanceTransform, EqualsBruteForce) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::uint64_t one_in = std::uint64_t{1} << (seed % 12);
    const Image sources = random_sources(32, 32, seed, one_in);
    for (const int limit : {1, 5, 13, 155}) {
      EXPECT_EQ(squared_distances(sources, limit), brute_force(sources, limit)) << seed << ' ' << limit;
    }
  }
}

TEST(DistanceTransform, IsRightOnOneRowOneColumnAndAWideImage) {
  for (const auto& [height, width] : {std::pair(1, 40), std::pair(40, 1), std::pair(1, 1), std::pair(3, 700)}) {
    const Image sources = random_sources(height, width, 9, 20);
    EXPECT_EQ(squared_distances(sources, 155), brute_force(sources, 155)) << height << ' ' << width;
  }
  Image wide(1, 65'535, 1);
  wide.pixels.front() = 1;
  EXPECT_EQ(squared_distances(wide, 155).back(), 155 * 155);
  EXPECT_EQ(squared_distances(wide, 155)[154], 154 * 154);
}

// lambda 4: D is twice the distance. Neither the background (0) nor what is ignored is a stroke.
TEST(DistanceMaps, OfAScribbleFallWithTheDistance) {
  Image scribble(1, 200, 1, kIgnored);
  scribble.pixels[0] = 0;
  scribble.pixels[10] = 3;
  const Image map = near_scribble_map(scribble, 4);
  EXPECT_EQ(map.pixels[10], 255);
  EXPECT_EQ(map.pixels[9], 253);
  EXPECT_EQ(map.pixels[0], 235);
  EXPECT_EQ(map.pixels[137], 1);  // 255 - 2 * 127
  EXPECT_EQ(map.pixels[138], 0);  // 255 - 256
  EXPECT_EQ(map.pixels[199], 0);
}

// A square of 5 x 5 at the left edge: what is beyond the edge is no outside.
TEST(DistanceMaps, OfAContourGrowWithTheDistance) {
  Image pseudo(9, 9, 1);
  for (int y = 2; y < 7; ++y) {
    for (int x = 0; x < 5; ++x) pseudo.row(y)[x] = 2;
  }
  pseudo.row(8)[8] = kIgnored;
  const Image map = near_contour_map(pseudo, 16);
  EXPECT_EQ(map.at(2, 0), 0);
  EXPECT_EQ(map.at(4, 4), 0);
  EXPECT_EQ(map.at(6, 2), 0);
  EXPECT_EQ(map.at(4, 0), 8);  // two rows from the contours above and below
  EXPECT_EQ(map.at(3, 1), 4);
  EXPECT_EQ(map.at(1, 1), 4);
  EXPECT_EQ(map.at(7, 5), 6);   // 4 * sqrt(2) = 5.66
  EXPECT_EQ(map.at(8, 8), 18);  // 4 * sqrt(4 + 16) = 17.89
}

TEST(DistanceMaps, WithoutASourceTrustNoScribbleAndDoubtNoContour) {
  EXPECT_EQ(near_scribble_map(Image(4, 5, 1, kIgnored), 2.718), Image(4, 5, 1, 0));
  EXPECT_EQ(near_contour_map(Image(4, 5, 1, 0), 403.4), Image(4, 5, 1, 255));
}

// e^6: 20.09 a pixel, so 13 pixels are 255.
TEST(DistanceMaps, HaveTheFactorsOfThePaper) {
  Image mask(1, 40, 1);
  mask.pixels[0] = 1;
  const Image map = near_contour_map(mask, DistanceOptions().lambda_c);
  EXPECT_EQ(map.pixels[1], 20);
  EXPECT_EQ(map.pixels[12], 241);
  EXPECT_EQ(map.pixels[13], 255);
  EXPECT_EQ(near_scribble_map(mask, DistanceOptions().lambda_s).pixels[10], 255 - 16);  // 16.49
}

}  // namespace
}  // namespace tandem::segment
