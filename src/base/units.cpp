#include <tandem/units.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"

namespace tandem {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<Unit, 7> kTimes{{{"d", 86'400'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};

constexpr std::array<Unit, 9> kSizes{{{"TiB", 1ULL << 40},
                                      {"TB", 1'000'000'000'000},
                                      {"GiB", 1ULL << 30},
                                      {"GB", 1'000'000'000},
                                      {"MiB", 1ULL << 20},
                                      {"MB", 1'000'000},
                                      {"KiB", 1ULL << 10},
                                      {"kB", 1'000},
                                      {"B", 1}}};

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// A decimal number times a unit; nothing unless exact: 1.5 * 1000 is 1500, 0.5 * 1 is nothing.
std::optional<std::uint64_t> scaled(std::string_view number, std::uint64_t unit) {
  const std::size_t dot = number.find('.');
  const std::string_view fraction = dot == std::string_view::npos ? "" : number.substr(dot + 1);
  const auto digits = to_unsigned(str(number.substr(0, dot), fraction));
  if (!digits || dot == 0 || number.ends_with('.')) return std::nullopt;
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(*digits, unit, &product)) return std::nullopt;
  for (std::size_t i = 0; i < fraction.size(); ++i) {
    if (product % 10 != 0) return std::nullopt;
    product /= 10;
  }
  return product;
}

// Removes the leading number and the unit after it from `text`.
struct Term {
  std::string_view number;
  std::string_view unit;
};

Term take_term(std::string_view& text) {
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::size_t end = std::min(text.find_first_of("0123456789.", unit_at), text.size());
  const Term term{text.substr(0, unit_at), text.substr(unit_at, end - unit_at)};
  text.remove_prefix(end);
  return term;
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  if (text.empty()) return std::nullopt;
  std::uint64_t total = 0;
  while (!text.empty()) {
    const Term term = take_term(text);
    const Unit* unit = find_unit(kTimes, bare ? "s" : term.unit);
    if (unit == nullptr) return std::nullopt;
    const auto part = scaled(term.number, unit->size);
    if (!part || __builtin_add_overflow(total, *part, &total)) return std::nullopt;
  }
  if (total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  const auto count = static_cast<std::int64_t>(total);
  return std::chrono::nanoseconds(negative ? -count : count);
}

std::string duration_text(std::chrono::nanoseconds duration) {
  const bool negative = duration.count() < 0;
  const auto count = static_cast<std::uint64_t>(duration.count());
  std::uint64_t left = negative ? 0 - count : count;
  std::string text = negative ? "-" : "";
  if (left == 0) return "0s";
  for (const Unit& unit : kTimes) {
    if (unit.name == "d" || left < unit.size) continue;
    text += str(left / unit.size, unit.name);
    left %= unit.size;
  }
  return text;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const Term term = take_term(text);
  const Unit* unit = find_unit(kSizes, term.unit.empty() ? "B" : term.unit);
  if (unit == nullptr || !text.empty()) return std::nullopt;
  const auto count = scaled(term.number, unit->size);
  return count ? std::optional(Bytes{*count}) : std::nullopt;
}

std::string bytes_text(Bytes size) {
  for (const Unit& unit : kSizes) {
    if (size.count > 0 && size.count % unit.size == 0) return str(size.count / unit.size, unit.name);
  }
  return "0B";
}

}  // namespace tandem
