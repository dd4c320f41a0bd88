#pragma once

#include <tandem/error.h>
#include <tandem/units.h>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/text.h"

namespace tandem {

// Limits for settings that have none of their own: beyond them, sums and products of settings would overflow.
constexpr std::int64_t kMostCount = 1'000'000'000;
constexpr double kMostNumber = 1e30;

// For validate(): an Error unless the setting of that name is from `least` to `most`; NaN is not.
template <class Number>
void check_range(std::string_view name, Number value, std::type_identity_t<Number> least,
                 std::type_identity_t<Number> most) {
  if (value >= least && value <= most) return;
  fail(ErrorKind::Config, str(name, " is ", value), str("give ", least, " to ", most));
}

// The same for a time of at most a year: with centuries, points in time would overflow.
inline void check_duration(std::string_view name, std::chrono::nanoseconds value, std::chrono::nanoseconds least) {
  constexpr std::chrono::hours kMost(365 * 24);
  if (value >= least && value <= kMost) return;
  fail(ErrorKind::Config, str(name, " is ", duration_text(value)),
       str("give ", duration_text(least), " to ", duration_text(kMost), ", such as 11h30m"));
}

}  // namespace tandem
