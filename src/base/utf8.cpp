#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace tandem {
namespace {

struct Sequence {
  std::size_t length;  // of the character, or of the invalid part replaced by one U+FFFD
  bool is_valid;
};

// The number of bytes after a lead byte, and the range of the first of them (Unicode, table 3-7), which excludes
// surrogates, code points above U+10FFFF and overlong forms.
struct Lead {
  std::size_t num_tails;
  unsigned char lowest;
  unsigned char highest;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {2, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  }
  return {3, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
          static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
}

Sequence first_sequence(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  if (byte(0) < 0x80) return {1, true};
  Lead lead = lead_of(byte(0));
  std::size_t length = 1;
  while (length <= lead.num_tails && length < text.size() && byte(length) >= lead.lowest &&
         byte(length) <= lead.highest) {
    ++length;
    lead.lowest = 0x80;
    lead.highest = 0xBF;
  }
  return {length, lead.num_tails > 0 && length == lead.num_tails + 1};
}

std::size_t ascii_prefix(std::string_view text) {
  std::size_t at = 0;
  for (std::uint64_t eight = 0; at + sizeof(eight) <= text.size(); at += sizeof(eight)) {
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    if ((eight & 0x8080808080808080ULL) != 0) break;
  }
  return at;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    const std::size_t stop = std::min(at + sizeof(std::uint64_t), text.size());
    while (at < stop) {
      const Sequence sequence = first_sequence(text.substr(at));
      if (!sequence.is_valid) return at;
      at += sequence.length;
    }
  }
  return at;
}

RepairedText repair_utf8(std::string_view text) {
  RepairedText repaired;
  while (true) {
    const std::size_t length = valid_utf8_prefix(text);
    repaired.text += text.substr(0, length);
    text.remove_prefix(length);
    if (text.empty()) return repaired;
    text.remove_prefix(first_sequence(text).length);
    repaired.text += "\xEF\xBF\xBD";
    ++repaired.num_replaced;
  }
}

}  // namespace tandem
