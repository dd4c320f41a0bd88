#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

struct CodePoint {
  char32_t value;
  std::uint8_t length;  // in bytes
};

// The first character of a non-empty valid UTF-8 text.
inline CodePoint first_code_point(const char* text) {
  const auto byte = [text](int at) { return static_cast<char32_t>(static_cast<unsigned char>(text[at])); };
  const auto tail = [&](int at) { return byte(at) & 0x3FU; };
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) < 0xE0) return {(byte(0) & 0x1FU) << 6 | tail(1), 2};
  if (byte(0) < 0xF0) return {(byte(0) & 0x0FU) << 12 | tail(1) << 6 | tail(2), 3};
  return {(byte(0) & 0x07U) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

// The length of the longest valid UTF-8 prefix of `text`.
std::size_t valid_utf8_prefix(std::string_view text);

struct RepairedText {
  std::string text;
  std::int64_t num_replaced = 0;
};

// Replaces each maximal invalid part by one U+FFFD, as recommended by Unicode and done by Python.
RepairedText repair_utf8(std::string_view text);

}  // namespace tandem
