#include "text/char_class.h"

#include <algorithm>
#include <vector>

#include "text/unicode_tables.h"

namespace tandem {
namespace {

// A table lookup below this code point, which is nearly all text; a search above.
constexpr char32_t kFlat = 0x10000;

std::vector<CharClass> make_flat_table() {
  std::vector<CharClass> table(kFlat, CharClass::Other);
  for (const ClassRange& range : class_ranges()) {
    for (char32_t point = range.first; point <= range.last && point < kFlat; ++point) table[point] = range.kind;
  }
  return table;
}

CharClass search(char32_t code_point) {
  const auto ranges = class_ranges();
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &ClassRange::last);
  return range != ranges.end() && range->first <= code_point ? range->kind : CharClass::Other;
}

}  // namespace

CharClass class_of(char32_t code_point) {
  static const std::vector<CharClass> kTable = make_flat_table();
  return code_point < kFlat ? kTable[code_point] : search(code_point);
}

}  // namespace tandem
