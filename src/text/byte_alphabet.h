#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// GPT-2's files write each byte of a token as one visible character: itself where it is a visible character of Latin-1,
// else one of U+0100 and on, in the order of the bytes. So the space is U+0120.
std::string visible_bytes(std::string_view bytes);

// The inverse; nothing when some character stands for no byte.
std::optional<std::string> bytes_of_visible(std::string_view text);

// The bytes in the order of their characters, which is the order of GPT-2's first 256 tokens: '!' first, 'a' 65th.
const std::array<unsigned char, 256>& bytes_in_order();

}  // namespace tandem
