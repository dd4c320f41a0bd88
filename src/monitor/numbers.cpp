#include "monitor/numbers.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace tandem {
namespace {

std::string with_exponent(double number, int decimals) {
  std::array<char, 32> text{};
  const auto result =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific, decimals);
  return {text.data(), result.ptr};
}

// The number in the largest unit in which it rounds to at least one.
struct Scaled {
  double number = 0;
  std::size_t unit = 0;
};

Scaled scale(double number, double factor, std::size_t num_units) {
  constexpr double kRoundsToThousand = 999.5;
  Scaled scaled{number};
  for (; scaled.number >= kRoundsToThousand && scaled.unit + 1 < num_units; ++scaled.unit) scaled.number /= factor;
  return scaled;
}

}  // namespace

std::string pad_left(std::string_view text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  return std::string(text).append(width > text.size() ? width - text.size() : 0, ' ');
}

std::string fit(double number, std::size_t width, int max_decimals) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  for (int decimals = max_decimals; decimals >= 0; --decimals) {
    std::string text = fixed(number, decimals);
    if (text.size() <= width) return text;
  }
  return with_exponent(number, 0);
}

std::string scientific(double number) { return with_exponent(number, 1); }

std::string short_count(double count) {
  constexpr std::array kUnits = {"", "k", "M", "G", "T"};
  const Scaled scaled = scale(count, 1000, kUnits.size());
  const bool is_whole = scaled.unit == 0 && count == std::floor(count);
  return str(fit(scaled.number, 4, is_whole ? 0 : 2), kUnits[scaled.unit]);
}

std::string short_time(double seconds) {
  constexpr double kFarthest = 1e9;
  if (!(seconds >= 0) || seconds > kFarthest) return "?";
  struct Pair {
    std::int64_t large, small;
    const char *large_name, *small_name;
  };
  constexpr std::array<Pair, 3> kPairs = {{{86'400, 3'600, "d", "h"}, {3'600, 60, "h", "m"}, {60, 1, "m", "s"}}};
  const auto whole = std::llround(seconds);
  for (const Pair& pair : kPairs) {
    if (whole < pair.large) continue;
    const std::int64_t rest = whole % pair.large / pair.small;
    return str(whole / pair.large, pair.large_name, rest < 10 ? "0" : "", rest, pair.small_name);
  }
  return str(whole, "s");
}

std::string step_time(double seconds) {
  constexpr double kShownInSeconds = 0.9995;
  constexpr double kShownInMinutes = 999.5;
  if (seconds >= kShownInMinutes) return short_time(seconds);
  return seconds < kShownInSeconds ? str(fit(seconds * 1000, 3, 1), " ms") : str(fit(seconds, 4, 2), " s");
}

std::string short_bytes(Bytes size) {
  constexpr std::array kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  const Scaled scaled = scale(static_cast<double>(size.count), 1024, kUnits.size());
  return str(fit(scaled.number, 4, scaled.unit == 0 ? 0 : 2), kUnits[scaled.unit]);
}

std::string percent(double fraction) { return str(fixed(fraction * 100, 0), "%"); }

std::string range_text(const std::string& low, const std::string& high) {
  return low == high ? low : str(low, " to ", high);
}

std::string counted(std::int64_t count, std::string_view noun) { return str(count, ' ', noun, count == 1 ? "" : "s"); }

}  // namespace tandem
