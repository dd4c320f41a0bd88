#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// GPT-2's files write each byte of a token as one printable character: a printable Latin-1 character as itself, the
// others as U+0100 and up, in the order of the bytes. A space is U+0120.
std::string visible_bytes(std::string_view bytes);

// The inverse; nothing if a character does not stand for a byte.
std::optional<std::string> bytes_of_visible(std::string_view text);

// The bytes in the order of their characters, which are GPT-2's first 256 tokens: '!' first, 'a' 65th.
const std::array<unsigned char, 256>& bytes_in_order();

}  // namespace tandem
