#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/vocabulary.h"

namespace tandem {

// In the order of GPT-2: bytes, results of merges, "<|endoftext|>".
inline Vocabulary small_vocabulary(std::initializer_list<std::pair<std::string, std::string>> merges) {
  Vocabulary vocabulary;
  for (const unsigned char byte : bytes_in_order()) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  const auto id_of = [&](const std::string& token) {
    return static_cast<TokenId>(std::ranges::find(vocabulary.tokens, token) - vocabulary.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    const Merge merge{.left = id_of(left), .right = id_of(right), .result = id_of(left + right)};
    vocabulary.merges.push_back(merge);
    if (merge.result == static_cast<TokenId>(vocabulary.tokens.size())) vocabulary.tokens.push_back(left + right);
  }
  vocabulary.specials.push_back(static_cast<TokenId>(vocabulary.tokens.size()));
  vocabulary.tokens.emplace_back(kEndOfText);
  return vocabulary;
}

}  // namespace tandem
