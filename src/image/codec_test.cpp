#include "image/codec.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <tandem/error.h>
#include <unistd.h>

#include <array>
#include <numeric>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/text.h"
#include "image/exif.h"

namespace tandem {
namespace {

Image counted(int height, int width, int channels) {
  Image image(height, width, channels);
  std::iota(image.pixels.begin(), image.pixels.end(), std::uint8_t{0});
  return image;
}

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

// The PNG with another size, depth and colour type in its header.
std::string with_header(std::string png, std::uint32_t width, std::uint32_t height, char depth, char colour) {
  const std::string header = "IHDR" + big_endian(width) + big_endian(height) + depth + colour + std::string(3, '\0');
  png.replace(12, header.size() + 4, header + big_endian(crc32(header)));
  return png;
}

// The JPEG with another size in its header.
std::string with_size(std::string jpeg, std::uint32_t width, std::uint32_t height) {
  const std::size_t sides = jpeg.find("\xFF\xC0") + 5;
  jpeg.replace(sides, 4, big_endian(height << 16 | width));
  return jpeg;
}

// What is before the pixels of a JPEG with that many components.
std::string jpeg_header(char num_components) {
  std::string sizes = {8, 0, 8, 0, 8, num_components};
  std::string scan = {num_components};
  for (char i = 1; i <= num_components; ++i) {
    sizes += {i, 0x11, 0};
    scan += {i, 0};
  }
  scan += {0, 63, 0};
  const auto marker = [](char kind, const std::string& body) {
    return std::string{'\xFF', kind, '\0', static_cast<char>(body.size() + 2)} + body;
  };
  return "\xFF\xD8" + marker('\xC0', sizes) + marker('\xDA', scan) + std::string(100, '\0');
}

Error decode_error(const std::string& bytes, const DecodeOptions& options = {}) {
  return error_of([&] { decode_image(bytes, "a.img", options); });
}

TEST(Codec, PngKeepsEveryPixelOfGreyColourAndIndices) {
  EXPECT_EQ(decode_image(encode_png(counted(5, 7, 3)), "a.png"), counted(5, 7, 3));
  EXPECT_EQ(decode_image(encode_png(counted(5, 7, 1)), "a.png", {.kind = PixelKind::Grey}), counted(5, 7, 1));
  const std::array<std::uint8_t, 9> palette = {10, 20, 30, 40, 50, 60, 70, 80, 90};
  Image classes(1, 4, 1);
  classes.pixels = {2, 0, 1, 2};
  const std::string file = encode_png(classes, palette);
  EXPECT_EQ(decode_image(file, "a.png", {.kind = PixelKind::Indices}), classes);
  EXPECT_EQ(decode_image(file, "a.png").pixels,
            (std::vector<std::uint8_t>{70, 80, 90, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
}

TEST(Codec, PngDropsAlpha) {
  Image image(1, 2, 4);
  image.pixels = {1, 2, 3, 0, 5, 6, 7, 128};
  EXPECT_EQ(decode_image(encode_png(image), "a.png").pixels, (std::vector<std::uint8_t>{1, 2, 3, 5, 6, 7}));
}

TEST(Codec, GreyIsPillowsMixOfColours) {
  Image image(1, 4, 3);
  image.pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 200, 100, 50};
  EXPECT_EQ(decode_image(encode_png(image), "a.png", {.kind = PixelKind::Grey}).pixels,
            (std::vector<std::uint8_t>{76, 150, 29, 124}));
}

TEST(Codec, JpegKeepsFlatColours) {
  const Image grey(16, 24, 1, 100);
  EXPECT_EQ(decode_image(encode_jpeg(grey), "a.jpg", {.kind = PixelKind::Grey}), grey);
  EXPECT_EQ(decode_image(encode_jpeg(grey), "a.jpg"), Image(16, 24, 3, 100));
  EXPECT_EQ(decode_image(encode_jpeg(Image(16, 24, 3, 200)), "a.jpg"), Image(16, 24, 3, 200));
}

TEST(Codec, JpegIsDecodedAtTheSmallestSizeThatIsLargeEnough) {
  const std::string file = encode_jpeg(Image(64, 100, 1, 50));
  const auto size = [&](int least_side) {
    const Image image = decode_image(file, "a.jpg", {.kind = PixelKind::Grey, .least_side = least_side});
    return std::array{image.height, image.width};
  };
  EXPECT_EQ(size(0), (std::array{64, 100}));
  EXPECT_EQ(size(33), (std::array{64, 100}));
  EXPECT_EQ(size(32), (std::array{32, 50}));
  EXPECT_EQ(size(16), (std::array{16, 25}));
  EXPECT_EQ(size(1), (std::array{8, 13}));
}

TEST(Codec, HeaderIsReadWithoutThePixels) {
  const std::string png = encode_png(counted(5, 7, 3));
  const ImageHeader header = decode_image_header(std::string_view(png).substr(0, 45), "a.png");
  EXPECT_EQ((std::array{header.height, header.width, header.channels}), (std::array{5, 7, 3}));
  const ImageHeader jpeg = decode_image_header(with_size(encode_jpeg(Image(16, 8, 1)), 640, 480), "a.jpg");
  EXPECT_EQ((std::array{jpeg.height, jpeg.width, jpeg.channels}), (std::array{480, 640, 1}));
}

TEST(Codec, OtherFilesAreNamedWithTheirFirstBytes) {
  using namespace std::string_literals;
  EXPECT_TRUE(says(decode_error("names: []").message(), {"a.img", "neither a JPEG nor a PNG", "6e616d65"}));
  EXPECT_EQ(decode_error("").message(), "a.img is empty");
  EXPECT_TRUE(says(decode_error("RIFF\x10\0\0\0WEBPVP8 "s).message(), {"a.img", "neither a JPEG nor a PNG", "WebP"}));
  EXPECT_TRUE(says(decode_error("RIFF").message(), {"52494646"}));
  EXPECT_TRUE(says(decode_error("GIF89a").message(), {"GIF"}));
  EXPECT_TRUE(says(decode_error("BM\x10\0"s).message(), {"BMP"}));
  EXPECT_TRUE(says(decode_error("II*\0\x08"s).message(), {"TIFF"}));
  EXPECT_TRUE(says(decode_error("MM\0*\0"s).message(), {"TIFF"}));
}

TEST(Codec, TruncatedFilesAreErrors) {
  const std::string jpeg = encode_jpeg(counted(40, 50, 3));
  const std::string png = encode_png(counted(40, 50, 3));
  for (std::size_t size = 3; size < jpeg.size(); ++size) {
    EXPECT_NE(decode_error(jpeg.substr(0, size)).message(), "") << size;
  }
  for (std::size_t size = 8; size < png.size(); ++size) {
    EXPECT_NE(decode_error(png.substr(0, size)).message(), "") << size;
  }
  const Error error = decode_error(jpeg.substr(0, jpeg.size() / 2));
  EXPECT_TRUE(says(error.message(), {"a.img is a JPEG that cannot be decoded", "end"}));
  EXPECT_TRUE(says(error.hint(), {"truncated or damaged"}));
  EXPECT_TRUE(says(decode_error(png.substr(0, 200)).message(), {"a.img is a PNG", "ends too early"}));
}

TEST(Codec, DamagedPixelsAreErrors) {
  std::string png = encode_png(counted(40, 50, 3));
  png[png.size() / 2] = static_cast<char>(png[png.size() / 2] ^ 1);
  EXPECT_TRUE(says(decode_error(png).message(), {"a.img is a PNG that cannot be decoded"}));
}

TEST(Codec, ColoursOfPrintAreErrors) {
  const Error error = decode_error(jpeg_header(4));
  EXPECT_TRUE(says(error.message(), {"a.img", "CMYK"}));
  EXPECT_TRUE(says(error.hint(), {"convert"}));
}

TEST(Codec, ClassNumbersNeedAPngOfOneChannelAndEightBits) {
  const DecodeOptions indices{.kind = PixelKind::Indices};
  EXPECT_TRUE(says(decode_error(encode_jpeg(counted(8, 8, 1)), indices).message(), {"a.img is a JPEG", "not exact"}));
  EXPECT_TRUE(says(decode_error(encode_png(counted(8, 8, 3)), indices).message(), {"a.img", "colours"}));
  const std::string deep = with_header(encode_png(counted(8, 8, 1)), 4, 8, 16, 0);
  const Error error = decode_error(deep, indices);
  EXPECT_TRUE(says(error.message(), {"a.img", "16 bits"}));
  EXPECT_TRUE(says(error.hint(), {"8 bits"}));
}

TEST(Codec, SizesBeyondTheLimitAreErrors) {
  const std::string png = encode_png(Image(8, 8, 3));
  const std::string jpeg = encode_jpeg(Image(8, 8, 3));
  EXPECT_TRUE(says(decode_error(with_header(png, 65'535, 65'535, 8, 2)).message(),
                   {"a.img", "65535 x 65535", "at most 89478485"}));
  EXPECT_TRUE(says(decode_error(with_header(png, 70'000, 1, 8, 2)).message(), {"a.img", "70000 x 1", "65535"}));
  EXPECT_TRUE(says(decode_error(with_header(png, 0x7FFFFFFF, 0x7FFFFFFF, 8, 2)).message(), {"2147483647"}));
  EXPECT_TRUE(says(decode_error(with_size(jpeg, 65'535, 65'535)).message(), {"a.img", "65500"}));
  EXPECT_TRUE(says(decode_error(with_size(jpeg, 65'500, 65'500)).message(), {"a.img", "65500 x 65500", "89478485"}));
  EXPECT_TRUE(says(decode_error(jpeg, {.most_pixels = 63}).message(), {"8 x 8", "at most 63"}));
  EXPECT_EQ(decode_error(jpeg, {.most_pixels = 64}).message(), "");
}

// In an address space with room for a few rows of their pixels, but not for all.
[[noreturn]] void decode_in_little_room(const std::vector<std::string>& files) {
  const auto num_pages = static_cast<rlim_t>(to_integer(split(read_file("/proc/self/statm"), ' ').front()).value());
  const rlim_t room = num_pages * static_cast<rlim_t>(::getpagesize()) + (rlim_t{64} << 20);
  const rlimit limit{.rlim_cur = room, .rlim_max = room};
  ::setrlimit(RLIMIT_AS, &limit);
  std::string refused;
  for (const std::string& file : files) {
    refused += decode_error(file, {.most_pixels = 80'000'000}).message() + "\n";
    decode_image_header(file, "a.img");
  }
  write_all(STDERR_FILENO, refused);
  ::_exit(0);
}

TEST(CodecDeathTest, ALargeImageIsRefusedBeforeAnythingIsAllocated) {
  if (::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr) {
    GTEST_SKIP() << "a sanitizer needs more address space";
  }
  const std::vector<std::string> files = {with_header(encode_png(Image(8, 8, 3)), 9000, 9000, 8, 2),
                                          with_size(encode_jpeg(Image(8, 8, 3)), 9000, 9000)};
  EXPECT_EXIT(decode_in_little_room(files), testing::ExitedWithCode(0),
              "9000 x 9000 .*at most 80000000.*\n.*9000 x 9000 .*at most 80000000");
}

TEST(Codec, ImagesThatDoNotFitAreNotEncoded) {
  Image torn(2, 2, 3);
  torn.pixels.pop_back();
  EXPECT_TRUE(says(error_of([&] { encode_png(torn); }).message(), {"2 x 2 x 3", "11"}));
  EXPECT_TRUE(says(error_of([&] { encode_png(Image()); }).message(), {"0 x 0"}));
  EXPECT_TRUE(says(error_of([&] { encode_jpeg(Image(2, 2, 4)); }).message(), {"4 channels"}));
  EXPECT_TRUE(says(error_of([&] { encode_jpeg(Image(2, 2, 3), 101); }).message(), {"quality 101"}));
  const std::array<std::uint8_t, 6> palette{};
  EXPECT_TRUE(says(error_of([&] { encode_png(Image(2, 2, 1, 2), palette); }).message(), {"index 2", "2 colours"}));
  EXPECT_TRUE(says(error_of([&] { encode_png(Image(2, 2, 3), palette); }).message(), {"6 bytes", "3 channels"}));
}

std::string exif_with(std::string_view tiff) { return std::string("Exif\0\0", 6).append(tiff); }

TEST(Exif, OrientationIsReadInBothByteOrders) {
  const std::string little("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22);
  const std::string big("MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0", 22);
  EXPECT_EQ(exif_orientation(exif_with(little)), 6);
  EXPECT_EQ(exif_orientation(exif_with(big)), 6);
  for (std::size_t size = 0; size < 20; ++size) EXPECT_EQ(exif_orientation(exif_with(little.substr(0, size))), 1);
  EXPECT_EQ(exif_orientation(little), 1);
}

TEST(Exif, PlacesOutsideOfTheFileAreNotFollowed) {
  EXPECT_EQ(exif_orientation(exif_with({"II*\0\xFF\xFF\xFF\xFF\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22})), 1);
  EXPECT_EQ(exif_orientation(exif_with({"II*\0\x08\0\0\0\xFF\xFF\x13\1\3\0\1\0\0\0\6\0\0\0", 22})), 1);
  EXPECT_EQ(exif_orientation(exif_with({"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\x09\0\0\0", 22})), 1);
}

TEST(Exif, EntriesBeyondTheEndAreNotLookedFor) {
  const std::string two_entries = exif_with(std::string("II*\0\x08\0\0\0\xFF\xFF", 10) + std::string(35, '\1'));
  EXPECT_EQ(num_exif_entries(two_entries), 2);
  EXPECT_EQ(num_exif_entries(two_entries.substr(0, 17)), 0);
  EXPECT_EQ(num_exif_entries(exif_with({"MM\0*\0\0\0\x08\0\1", 10}) + std::string(100, '\1')), 1);
  EXPECT_EQ(num_exif_entries(exif_with({"MM\0*\xFF\xFF\xFF\xFF\0\1", 10})), 0);
  EXPECT_EQ(num_exif_entries(two_entries.substr(6)), 0);
}

// JPEG with these APP1 markers after its beginning.
std::string jpeg_with(const std::vector<std::string>& bodies) {
  std::string jpeg = encode_jpeg(Image(8, 16, 1));
  std::string markers;
  for (const std::string& body : bodies) {
    const std::size_t size = body.size() + 2;
    markers += "\xFF\xE1";
    markers += {static_cast<char>(size >> 8), static_cast<char>(size)};
    markers += body;
  }
  return jpeg.insert(2, markers);
}

TEST(Exif, OrientationIsThatOfAnyMarkerBeforeThePixels) {
  const std::string turned = exif_with({"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0", 22});
  EXPECT_EQ(decode_image(jpeg_with({turned}), "a.jpg").height, 16);
  EXPECT_EQ(decode_image(jpeg_with({"words that are no EXIF", "", turned}), "a.jpg").height, 16);
  EXPECT_EQ(decode_image(jpeg_with({turned}), "a.jpg", {.orient = false}).height, 8);
  EXPECT_EQ(jpeg_orientation("\xFF\xD8\xFF" + jpeg_with({turned}).substr(2)), 6);  // a fill byte
  EXPECT_EQ(jpeg_orientation(encode_jpeg(Image(8, 16, 1)) + jpeg_with({turned}).substr(2)), 1);
  for (std::size_t size = 0; size < 32; ++size) EXPECT_EQ(jpeg_orientation(jpeg_with({turned}).substr(0, size)), 1);
}

// In a list in which the end is searched for whenever one is added, as that of libjpeg, they would take half an hour.
TEST(Exif, AMillionMarkersAreReadOnce) {
  const std::vector<std::string> empty(1'000'000);
  EXPECT_EQ(decode_image(jpeg_with(empty), "a.jpg").height, 8);
}

// 0 1 2
// 3 4 5
TEST(Exif, ImagesAreTurnedAndMirrored) {
  const Image image = counted(2, 3, 1);
  const auto seen = [&](int orientation) { return oriented(image, orientation).pixels; };
  using Pixels = std::vector<std::uint8_t>;
  EXPECT_EQ(seen(1), (Pixels{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(seen(2), (Pixels{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(seen(3), (Pixels{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(seen(4), (Pixels{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(seen(5), (Pixels{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(seen(6), (Pixels{3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(seen(7), (Pixels{5, 2, 4, 1, 3, 0}));
  EXPECT_EQ(seen(8), (Pixels{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(oriented(image, 6).height, 3);
}

}  // namespace
}  // namespace tandem
