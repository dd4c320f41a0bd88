#pragma once

#include <span>

#include "text/char_class.h"

namespace tandem {

struct ClassRange {
  char32_t first;
  char32_t last;
  CharClass kind;
};

// Disjoint and in order; a code point in none of them is Other.
std::span<const ClassRange> class_ranges();

}  // namespace tandem
