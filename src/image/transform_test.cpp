#include "image/transform.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <array>
#include <limits>
#include <random>

#include "base/error_test.h"
#include "image/resize.h"
#include "image/row_loops.h"

namespace tandem {
namespace {

using Pixels = std::vector<std::uint8_t>;

Image image_of(int height, int width, int channels, Pixels pixels) {
  Image image(height, width, channels);
  image.pixels = std::move(pixels);
  return image;
}

constexpr std::array<std::uint8_t, 1> kNine = {9};
constexpr std::array<std::uint8_t, 3> kColour = {7, 8, 9};

TEST(Image, SizesWithoutPixelsOrWithTooManyAreErrors) {
  EXPECT_TRUE(says(error_of([] { Image(0, 5, 3); }).message(), {"5 x 0"}));
  EXPECT_TRUE(says(error_of([] { Image(5, 5, 2); }).message(), {"2 channels"}));
  EXPECT_TRUE(says(error_of([] { Image(65'536, 1, 1); }).message(), {"1 x 65536"}));
  EXPECT_TRUE(says(error_of([] { Image(65'535, 65'535, 3); }).message(), {"65535 x 65535"}));
}

// Halving: a triangle over four pixels, 1 3 3 1 of 8; at the edge 3 3 1 of 7.
TEST(Resize, BilinearWeighsAllPixelsThatItCovers) {
  const Image image = image_of(1, 6, 1, {0, 80, 160, 80, 0, 240});
  EXPECT_EQ(resize_bilinear(image, {1, 3}).pixels, (Pixels{57, 100, 114}));
}

TEST(Resize, BilinearDoublesWithQuarters) {
  EXPECT_EQ(resize_bilinear(image_of(1, 2, 1, {0, 100}), {1, 4}).pixels, (Pixels{0, 25, 75, 100}));
  EXPECT_EQ(resize_bilinear(image_of(2, 1, 1, {0, 100}), {4, 1}).pixels, (Pixels{0, 25, 75, 100}));
  EXPECT_EQ(resize_bilinear(image_of(1, 2, 3, {0, 4, 8, 100, 104, 108}), {1, 4}).pixels,
            (Pixels{0, 4, 8, 25, 29, 33, 75, 79, 83, 100, 104, 108}));
}

TEST(Resize, NearestKeepsClassNumbers) {
  const Image image = image_of(2, 2, 1, {1, 255, 7, 3});
  EXPECT_EQ(resize_nearest(image, {3, 4}).pixels, (Pixels{1, 1, 255, 255, 7, 7, 3, 3, 7, 7, 3, 3}));
  EXPECT_EQ(resize_nearest(image, {1, 1}).pixels, (Pixels{3}));
}

// OpenCV samples at the centre alone: of six pixels, between 1 and 2, 3 and 4, 5 and 6.
TEST(Resize, OpenCvSkipsPixels) {
  EXPECT_EQ(resize_linear_opencv(image_of(1, 8, 1, {0, 10, 20, 90, 40, 50, 60, 250}), {1, 2}).pixels, (Pixels{15, 55}));
}

TEST(Resize, ToNothingIsAnError) {
  const Image image(4, 4, 1);
  for (const ImageSize size : {ImageSize{0, 4}, ImageSize{4, -1}, ImageSize{65'535, 65'535}}) {
    EXPECT_NE(error_of([&] { resize_bilinear(image, size); }).message(), "");
    EXPECT_NE(error_of([&] { resize_nearest(image, size); }).message(), "");
    EXPECT_NE(error_of([&] { resize_linear_opencv(image, size); }).message(), "");
    EXPECT_NE(error_of([&] { crop(image, 0, 0, size, kNine); }).message(), "");
  }
}

TEST(Transform, CropFillsWhatLiesOutside) {
  const Image image = image_of(2, 2, 1, {1, 2, 3, 4});
  EXPECT_EQ(crop(image, -1, -1, {2, 4}, kNine).pixels, (Pixels{9, 9, 9, 9, 9, 1, 2, 9}));
  EXPECT_EQ(crop(image, 1, 1, {2, 2}, kNine).pixels, (Pixels{4, 9, 9, 9}));
  EXPECT_EQ(crop(image, 0, 100, {1, 2}, kNine).pixels, (Pixels{9, 9}));
  EXPECT_EQ(crop(image, 0, -100, {1, 2}, kNine).pixels, (Pixels{9, 9}));
  EXPECT_EQ(crop(Image(1, 1, 3, 1), 0, 1, {1, 2}, kColour).pixels, (Pixels{7, 8, 9, 7, 8, 9}));
  EXPECT_TRUE(says(error_of([&] { crop(image, 0, 0, {1, 1}, kColour); }).message(), {"3 values", "1 channels"}));
}

TEST(Transform, FlipKeepsTheOrderOfChannels) {
  EXPECT_EQ(flip_horizontal(image_of(1, 2, 3, {1, 2, 3, 4, 5, 6})).pixels, (Pixels{4, 5, 6, 1, 2, 3}));
}

TEST(Transform, RotatesAgainstTheClock) {
  const Image image = image_of(2, 2, 1, {1, 2, 3, 4});
  EXPECT_EQ(rotate(image, 90, Interpolation::Nearest, kNine).pixels, (Pixels{2, 4, 1, 3}));
  EXPECT_EQ(rotate(image, -90, Interpolation::Nearest, kNine).pixels, (Pixels{3, 1, 4, 2}));
  EXPECT_EQ(rotate(image, 540, Interpolation::Bilinear, kNine).pixels, (Pixels{4, 3, 2, 1}));
  const Image wide = image_of(1, 3, 1, {1, 2, 3});
  EXPECT_EQ(rotate(wide, 90, Interpolation::Nearest, kNine).pixels, (Pixels{9, 2, 9}));
}

TEST(Transform, AffineTakesPointsOfTheOutputToTheInput) {
  const Image image = image_of(1, 4, 1, {10, 20, 30, 40});
  const std::array<double, 6> right_by_one = {1, 0, -1, 0, 1, 0};
  EXPECT_EQ(affine(image, right_by_one, {1, 4}, Interpolation::Nearest, kNine).pixels, (Pixels{9, 10, 20, 30}));
  EXPECT_EQ(affine(image, right_by_one, {1, 4}, Interpolation::Bilinear, kNine).pixels, (Pixels{9, 10, 20, 30}));
  const std::array<double, 6> by_half = {1, 0, 0.5, 0, 1, 0};
  EXPECT_EQ(affine(image, by_half, {1, 4}, Interpolation::Bilinear, kNine).pixels, (Pixels{15, 25, 35, 9}));
}

TEST(Transform, OpenCvMapsTheInputToTheOutputAndBlendsTheBorder) {
  const Image image = image_of(1, 3, 1, {100, 100, 200});
  constexpr std::array<std::uint8_t, 1> kBlack = {0};
  EXPECT_EQ(warp_affine_opencv(image, {1, 0, 0.5, 0, 1, 0}, {1, 4}, kBlack).pixels, (Pixels{50, 100, 150, 100}));
}

TEST(Transform, MatricesWithoutAnInverseOrANumberAreErrors) {
  const Image image(2, 2, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(error_of([&] { warp_affine_opencv(image, {1, 1, 0, 1, 1, 0}, {2, 2}, kNine); }).message(), "");
  EXPECT_NE(error_of([&] {
              affine(image, {nan, 0, 0, 0, 1, 0}, {2, 2}, Interpolation::Nearest, kNine);
            }).message(),
            "");
  EXPECT_NE(error_of([&] { rotate(image, nan, Interpolation::Nearest, kNine); }).message(), "");
}

TEST(Transform, FarAwayPointsAreFilled) {
  const Image image(3, 3, 1, 5);
  for (const double far : {1e300, -1e300, 1e9}) {
    const Image out = affine(image, {1, 0, far, 0, 1, 0}, {2, 2}, Interpolation::Bilinear, kNine);
    EXPECT_EQ(out.pixels, (Pixels{9, 9, 9, 9}));
    affine(image, {far, far, 0, far, -far, 0}, {2, 2}, Interpolation::Bilinear, kNine);
    affine(image, {far, far, 0, far, -far, 0}, {2, 2}, Interpolation::Nearest, kNine);
  }
}

// [1 4 6 4 1] / 16 both ways; the border is mirrored without its edge.
TEST(Blur, WeighsByOpenCvsKernel) {
  const Image image = image_of(1, 5, 1, {0, 0, 160, 0, 0});
  EXPECT_EQ(gaussian_blur(image, 5).pixels, (Pixels{20, 40, 60, 40, 20}));
  EXPECT_EQ(gaussian_blur(image, 1), image);
  EXPECT_NE(error_of([&] { gaussian_blur(image, 4); }).message(), "");
}

TEST(Hsv, IsThatOfOpenCv) {
  const Image colours = image_of(1, 5, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 10, 10, 255, 0, 9});
  const Image hsv = rgb_to_hsv(colours);
  EXPECT_EQ(hsv.pixels, (Pixels{0, 255, 255, 60, 255, 255, 120, 255, 255, 0, 0, 10, 179, 255, 255}));
  EXPECT_EQ(crop(hsv_to_rgb(hsv), 0, 0, {1, 4}, kColour), crop(colours, 0, 0, {1, 4}, kColour));
}

TEST(Hsv, JitterTurnsTheHueAndScalesTheRest) {
  const Image red = image_of(1, 1, 3, {200, 0, 0});
  EXPECT_EQ(jitter_hsv(red, {.hue = 1 / 3.0}).pixels, (Pixels{0, 200, 0}));
  EXPECT_EQ(jitter_hsv(red, {.hue = -1 / 3.0}).pixels, (Pixels{0, 0, 200}));
  EXPECT_EQ(jitter_hsv(red, {.saturation = 0.0}).pixels, (Pixels{200, 200, 200}));
  EXPECT_EQ(jitter_hsv(red, {.value = 2}).pixels, (Pixels{255, 0, 0}));
}

TEST(Letterbox, KeepsTheAspectAndSaysWhereTheImageIs) {
  const Letterboxed boxed = letterbox(Image(2, 4, 1, 5), {8, 8}, kNine);
  EXPECT_EQ(boxed.scale, 2);
  EXPECT_EQ((std::array{boxed.top, boxed.left}), (std::array{2, 0}));
  EXPECT_EQ(boxed.image.at(1, 3), 9);
  EXPECT_EQ(boxed.image.at(2, 3), 5);
  EXPECT_EQ(boxed.image.at(5, 3), 5);
  EXPECT_EQ(boxed.image.at(6, 3), 9);
  EXPECT_EQ(letterbox(Image(2, 4, 1, 5), {8, 9}, kNine, false).left, 2);
}

// The same work by each instruction set that this CPU has.
class Variants : public testing::Test {
 protected:
  std::mt19937 random{1};
  std::uint8_t any() { return static_cast<std::uint8_t>(random()); }
  Pixels bytes(std::size_t size) {
    Pixels out(size);
    for (std::uint8_t& byte : out) byte = any();
    return out;
  }

  template <class Run>
  void expect_same_bytes(std::size_t size, const Run& run) {
    Pixels expected(size);
    run(row_loops_variants().back(), expected.data());
    for (const RowLoops& loops : row_loops_variants()) {
      Pixels out(size + 1, 77);
      run(loops, out.data());
      EXPECT_EQ(out.back(), 77) << loops.name << " writes beyond the end of " << size;
      out.pop_back();
      EXPECT_EQ(out, expected) << loops.name << ", " << size << " bytes";
    }
  }
};

TEST_F(Variants, MixRowsAlike) {
  for (const std::size_t size : {1U, 15U, 31U, 32U, 33U, 127U, 128U, 300U, 1501U}) {
    const std::array<Pixels, 3> rows = {bytes(size), bytes(size), bytes(size)};
    const std::array<const std::uint8_t*, 3> pointers = {rows[0].data(), rows[1].data(), rows[2].data()};
    const std::array<std::int32_t, 3> weights = {1 << 20, 3 << 19, 3 << 19};
    for (const int num_rows : {1, 2, 3}) {
      expect_same_bytes(size, [&](const RowLoops& loops, std::uint8_t* out) {
        loops.mix_rows({pointers.data(), weights.data(), num_rows, out, size});
      });
    }
  }
}

TEST_F(Variants, MixColumnsAlike) {
  for (const int channels : {1, 3, 4}) {
    for (const int width : {1, 2, 3, 7, 8, 9, 50}) {
      const Pixels in = bytes(static_cast<std::size_t>((width + 3) * channels) + 8);
      std::vector<int> firsts;
      std::vector<int> counts;
      std::vector<std::int32_t> weights;
      for (int x = 0; x < width; ++x) {
        firsts.push_back(static_cast<int>(random() % static_cast<unsigned>(width)));
        counts.push_back(1 + x % 4);
        for (int k = 0; k < 4; ++k) weights.push_back(static_cast<std::int32_t>(random() % (1U << 20)));
      }
      expect_same_bytes(static_cast<std::size_t>(width * channels), [&](const RowLoops& loops, std::uint8_t* out) {
        loops.mix_columns({in.data(), firsts.data(), counts.data(), weights.data(), 4, out, width, channels});
      });
    }
  }
}

TEST_F(Variants, SampleLinesAlike) {
  constexpr std::int64_t kOne = std::int64_t{1} << 32;
  for (const int channels : {1, 3, 4}) {
    for (const int count : {1, 2, 3, 8, 17, 40}) {
      const auto row_size = static_cast<std::size_t>(50 * channels);
      const Pixels in = bytes(row_size * 50 + 8);
      for (const bool rounds : {false, true}) {
        expect_same_bytes(static_cast<std::size_t>(count * channels), [&](const RowLoops& loops, std::uint8_t* out) {
          loops.sample_line({in.data(), row_size, channels, kOne * 45 + 12345, kOne / 3, -kOne - 54321, kOne * 9 / 10,
                             out, count, rounds});
        });
      }
    }
  }
}

TEST_F(Variants, BlurAlike) {
  for (const std::size_t size : {1U, 15U, 33U, 128U, 300U}) {
    const Pixels in = bytes(size + 12);
    const std::array<std::uint16_t, 5> weights = {1, 4, 6, 4, 1};
    std::vector<std::uint16_t> sums(size);
    row_loops_variants().back().slide_weights({in.data(), 3, weights.data(), 5, sums.data(), size});
    for (const RowLoops& loops : row_loops_variants()) {
      std::vector<std::uint16_t> out(size);
      loops.slide_weights({in.data(), 3, weights.data(), 5, out.data(), size});
      EXPECT_EQ(out, sums) << loops.name;
    }
    const std::array<const std::uint16_t*, 5> rows = {sums.data(), sums.data(), sums.data(), sums.data(), sums.data()};
    const std::array<std::uint16_t, 5> wide_weights = {18, 63, 94, 63, 18};
    std::vector<std::uint16_t> wide_sums;
    for (const std::uint8_t value : in) wide_sums.push_back(static_cast<std::uint16_t>(value * 256));
    wide_sums[0] = 65'280;
    const std::array<const std::uint16_t*, 5> wide = {wide_sums.data(), wide_sums.data() + 1, wide_sums.data() + 7,
                                                      wide_sums.data() + 12, wide_sums.data()};
    expect_same_bytes(size, [&](const RowLoops& loops, std::uint8_t* out) {
      loops.mix_sums({rows.data(), weights.data(), 5, 8, out, size});
    });
    expect_same_bytes(size, [&](const RowLoops& loops, std::uint8_t* out) {
      loops.mix_sums({wide.data(), wide_weights.data(), 5, 16, out, size});
    });
  }
}

}  // namespace
}  // namespace tandem
