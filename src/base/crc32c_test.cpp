#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

// The values of RFC 3720, B.4, and the standard check value.
TEST(Crc32c, HasTheValuesOfItsStandard) {
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising.push_back(byte);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(Crc32c, IsTheSameWithoutTheInstruction) {
  EXPECT_EQ(detail::crc32c_by_table("123456789", 0), 0xE3069283U);
  EXPECT_EQ(detail::crc32c_by_table("56789", crc32c("1234")), 0xE3069283U);
}

TEST(Crc32c, ContinuesFromThePrecedingBytes) {
  for (std::size_t cut = 0; cut <= 9; ++cut) {
    const std::string_view text = "123456789";
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), 0xE3069283U) << cut;
  }
}

}  // namespace
}  // namespace tandem
