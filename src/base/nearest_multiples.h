#pragma once

#include <cstdint>
#include <string>

#include "base/text.h"

namespace tandem {

// "32 or 64" for 50 and 32: the multiples of `unit` below and above the value.
inline std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return below == 0 ? str(unit) : str(below, " or ", below + unit);
}

}  // namespace tandem
