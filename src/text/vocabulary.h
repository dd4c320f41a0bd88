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

// What a byte-level BPE knows. Each of the 256 bytes is a token; every other token that is not special is made by a
// merge.
struct Vocabulary {
  std::vector<std::string> tokens;  // by id: the bytes that each stands for
  std::vector<Merge> merges;        // the one that is done first comes first
  std::vector<TokenId> specials;    // never made of text, but found in it whole; in any order
};

}  // namespace tandem
