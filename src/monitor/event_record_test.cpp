#include "monitor/event_record.h"

#include <gtest/gtest.h>

#include <string_view>

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

}  // namespace
}  // namespace tandem
