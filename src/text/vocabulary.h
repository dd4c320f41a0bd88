#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

using TokenId = std::int32_t;

constexpr std::string_view kEndOfText = "<|endoftext|>";

// Two tokens that become one.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;

  friend bool operator==(const Merge&, const Merge&) = default;
};

// The vocabulary of a byte-level BPE. Each of the 256 bytes is a token; every other token is special or produced by a
// merge.
struct Vocabulary {
  std::vector<std::string> tokens;  // by id: their bytes
  std::vector<Merge> merges;        // by rank
  std::vector<TokenId> specials;    // matched as a whole in text; in any order
};

}  // namespace tandem
