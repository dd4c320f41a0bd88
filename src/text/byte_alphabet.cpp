#include "text/byte_alphabet.h"

#include "base/utf8.h"

namespace tandem {
namespace {

constexpr std::size_t kNumCharacters = 0x144;  // 256, and 68 for the bytes that are not printable

bool is_visible(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

struct Alphabet {
  std::array<char32_t, 256> characters{};
  std::array<int, kNumCharacters> bytes{};  // -1: none
  std::array<unsigned char, 256> order{};

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t character = is_visible(byte) ? static_cast<char32_t>(byte) : next++;
      characters[static_cast<std::size_t>(byte)] = character;
      bytes[character] = byte;
    }
    std::size_t place = 0;
    for (const int byte : bytes) {
      if (byte >= 0) order[place++] = static_cast<unsigned char>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

std::string visible_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const char32_t character = alphabet().characters[static_cast<unsigned char>(byte)];
    if (character >= 0x80) text += static_cast<char>(0xC0U | character >> 6);
    text += static_cast<char>(character < 0x80 ? character : 0x80U | (character & 0x3FU));
  }
  return text;
}

std::optional<std::string> bytes_of_visible(std::string_view text) {
  if (valid_utf8_prefix(text) != text.size()) return std::nullopt;
  std::string bytes;
  while (!text.empty()) {
    const CodePoint character = first_code_point(text.data());
    const int byte = character.value < kNumCharacters ? alphabet().bytes[character.value] : -1;
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    text.remove_prefix(character.length);
  }
  return bytes;
}

const std::array<unsigned char, 256>& bytes_in_order() { return alphabet().order; }

}  // namespace tandem
