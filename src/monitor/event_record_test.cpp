#include "monitor/event_record.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <array>
#include <vector>

#include "base/error_test.h"
#include "monitor/png.h"

namespace tandem {
namespace {

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 0xF];
  }
  return text;
}

// The start of every event file of TensorFlow; the last four bytes are the checksum for this time, computed in Python.
TEST(EventRecord, BeginsAFileAsTensorFlowDoes) {
  EXPECT_EQ(hex(framed(version_event(1.5))),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
}

TEST(EventRecord, HoldsAScalarInWireFormat) {
  EXPECT_EQ(hex(value_event(1.5, 300, "a", scalar_value(0.5))), "09000000000000f83f10ac022a0a0a080a0161150000003f");
}

TEST(EventRecord, WritesIntegersSevenBitsAByte) {
  EXPECT_EQ(hex(integer_field(1, 0)), "0800");
  EXPECT_EQ(hex(integer_field(2, 127)), "107f");
  EXPECT_EQ(hex(integer_field(2, 128)), "108001");
  EXPECT_EQ(hex(integer_field(16, 1)), "800101");
  EXPECT_EQ(hex(integer_field(1, -1)), "08ffffffffffffffffff01");
}

// As Python's zlib with level 0.
TEST(Png, IsTheOneThatPythonWrites) {
  const std::array<std::uint8_t, 6> pixels = {0x10, 0x20, 0x30, 0x40, 0x50, 0x60};
  EXPECT_EQ(hex(png_of({.height = 2, .width = 3, .num_channels = 1, .pixels = pixels})),
            "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c600000013494441547801010800f7ff0010203000"
            "40506003e801517f0e5d040000000049454e44ae426082");
}

TEST(Png, RefusesPixelsThatAreNotOfItsSize) {
  const std::vector<std::uint8_t> pixels(11);
  EXPECT_TRUE(says(error_of([&] { png_of({.height = 2, .width = 2, .num_channels = 3, .pixels = pixels}); }).message(),
                   {"2 x 2 x 3", "11"}));
  EXPECT_TRUE(says(error_of([&] { png_of({.height = 0, .width = 2, .num_channels = 3, .pixels = {}}); }).message(),
                   {"0 x 2 x 3", "0"}));
  EXPECT_EQ(error_of([&] { png_of({.height = 11, .width = 1, .num_channels = 1, .pixels = pixels}); }).message(), "");
}

}  // namespace
}  // namespace tandem
