#pragma once

#include <tandem/units.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

std::string pad_left(std::string_view text, std::size_t width);
std::string pad_right(std::string_view text, std::size_t width);

// With as many decimals as fit into `width`, at most `max_decimals`: 3.4127, 10.988, 1234.6 for a width of 6. Numbers
// too large for `width` are written as 1e+09; others as nan, inf or -inf.
std::string fit(double number, std::size_t width, int max_decimals);

// "3.0e-04"
std::string scientific(double number);

// Three significant digits: "512", "5.12k", "77.1k", "1.23M", "124M".
std::string short_count(double count);

// "9s", "1m02s", "2h05m", "3d04h"
std::string short_time(double seconds);

// A measured time: "4.1 ms", "212 ms", "1.24 s", "16m40s".
std::string step_time(double seconds);

// "640 B", "11.2 GiB"
std::string short_bytes(Bytes size);

// "41%"
std::string percent(double fraction);

// "205 ms to 212 ms"; only one if both are the same
std::string range_text(const std::string& low, const std::string& high);

// "1 step", "2 steps"
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace tandem
