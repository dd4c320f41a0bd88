#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// A field of a protocol buffer message in wire format. A message is the concatenation of its fields.
std::string integer_field(int number, std::int64_t value);
std::string float_field(int number, float value);
std::string double_field(int number, double value);
std::string bytes_field(int number, std::string_view value);  // or a text, or a message

// TFRecord framing: length and bytes, each with a checksum.
std::string framed(std::string_view bytes);

// The messages of an event file (event.proto and summary.proto of TensorBoard), without framing.
std::string version_event(double time);
std::string start_event(double time, std::int64_t first_step);
std::string value_event(double time, std::int64_t step, std::string_view tag, std::string_view value);

std::string scalar_value(double value);
std::string text_value(std::string_view text);
std::string image_value(std::int64_t height, std::int64_t width, std::int64_t num_channels, std::string_view png);

}  // namespace tandem
