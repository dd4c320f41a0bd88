#include "text/pretokenize.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "base/utf8.h"
#include "text/char_class.h"

namespace tandem {
namespace {

constexpr std::size_t kNumAscii = 128;

// class_of for ASCII, without a call.
constexpr std::array<CharClass, kNumAscii> kAsciiClasses = [] {
  std::array<CharClass, kNumAscii> classes{};
  for (char letter = 'a'; letter <= 'z'; ++letter) classes[letter] = classes[letter - 'a' + 'A'] = CharClass::Letter;
  for (char digit = '0'; digit <= '9'; ++digit) classes[digit] = CharClass::Number;
  for (const char space : {' ', '\t', '\n', '\v', '\f', '\r'}) classes[space] = CharClass::Space;
  return classes;
}();

struct Character {
  CharClass kind;
  std::uint8_t length;
};

Character first_character(const char* at) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < kNumAscii) return {kAsciiClasses[byte], 1};
  const CodePoint point = first_code_point(at);
  return {class_of(point.value), point.length};
}

const char* run_end(const char* at, const char* end, CharClass kind) {
  while (at < end) {
    const Character character = first_character(at);
    if (character.kind != kind) break;
    at += character.length;
  }
  return at;
}

// The length of an English contraction ('s, 're, ...) at the apostrophe, or 0.
std::ptrdiff_t ending_length(const char* at, const char* end) {
  const std::string_view rest(at + 1, static_cast<std::size_t>(end - at - 1));
  for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (rest.starts_with(ending)) return 1 + static_cast<std::ptrdiff_t>(ending.size());
  }
  return 0;
}

// Of several spaces before a non-space, the last belongs to the next piece.
const char* space_end(const char* at, const char* end) {
  const char* const stop = run_end(at, end, CharClass::Space);
  if (stop == end) return stop;
  const char* last = stop - 1;
  while ((static_cast<unsigned char>(*last) & 0xC0U) == 0x80U) --last;
  return last > at ? last : stop;
}

}  // namespace

const char* detail::piece_end_of_any(const char* at, const char* end) {
  if (*at == '\'') {
    if (const std::ptrdiff_t length = ending_length(at, end)) return at + length;
  }
  const char* const begin = *at == ' ' && at + 1 < end ? at + 1 : at;
  const Character first = first_character(begin);
  if (first.kind == CharClass::Space) return space_end(at, end);
  return run_end(begin + first.length, end, first.kind);
}

}  // namespace tandem
