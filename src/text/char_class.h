#pragma once

#include <cstdint>

namespace tandem {

// The classes of GPT-2's pre-tokenizer: \p{L}, \p{N}, \s of Unicode 15.0, or none of them.
enum class CharClass : std::uint8_t { Other, Letter, Number, Space };

CharClass class_of(char32_t code_point);

}  // namespace tandem
