#include "monitor/event_record.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"
#include "base/text.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied from memory");

enum class WireType { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

template <class Number>
std::string raw(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

// Seven bits per byte, lowest first; the high bit means that more follow.
std::string varint(std::uint64_t number) {
  constexpr std::uint64_t kMore = 0x80;
  std::string bytes;
  for (; number >= kMore; number >>= 7) bytes.push_back(static_cast<char>(number | kMore));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

std::string key(int number, WireType type) {
  return varint(static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(type));
}

// TFRecord's masked CRC, since the CRC of data that contains CRCs is weak.
std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; }

}  // namespace

std::string integer_field(int number, std::int64_t value) {
  return str(key(number, WireType::Varint), varint(static_cast<std::uint64_t>(value)));
}

std::string float_field(int number, float value) { return str(key(number, WireType::Fixed32), raw(value)); }

std::string double_field(int number, double value) { return str(key(number, WireType::Fixed64), raw(value)); }

std::string bytes_field(int number, std::string_view value) {
  return str(key(number, WireType::Length), varint(value.size()), value);
}

std::string framed(std::string_view bytes) {
  const std::string length = raw(std::uint64_t{bytes.size()});
  return str(length, raw(masked_crc(length)), bytes, raw(masked_crc(bytes)));
}

std::string version_event(double time) { return str(double_field(1, time), bytes_field(3, "brain.Event:2")); }

std::string start_event(double time, std::int64_t first_step) {
  const std::string start = integer_field(1, 1);
  return str(double_field(1, time), integer_field(2, first_step), bytes_field(7, start));
}

std::string value_event(double time, std::int64_t step, std::string_view tag, std::string_view value) {
  const std::string summary = bytes_field(1, str(bytes_field(1, tag), value));
  return str(double_field(1, time), integer_field(2, step), bytes_field(5, summary));
}

std::string scalar_value(double value) { return float_field(2, static_cast<float>(value)); }

std::string text_value(std::string_view text) {
  constexpr int kStringType = 7;
  constexpr int kTensorClass = 2;
  const std::string one_text = bytes_field(2, integer_field(1, 1));
  const std::string tensor = str(integer_field(1, kStringType), bytes_field(2, one_text), bytes_field(8, text));
  const std::string metadata = str(bytes_field(1, bytes_field(1, "text")), integer_field(4, kTensorClass));
  return str(bytes_field(9, metadata), bytes_field(8, tensor));
}

std::string image_value(std::int64_t height, std::int64_t width, std::int64_t num_channels, std::string_view png) {
  return bytes_field(
      4, str(integer_field(1, height), integer_field(2, width), integer_field(3, num_channels), bytes_field(4, png)));
}

}  // namespace tandem
