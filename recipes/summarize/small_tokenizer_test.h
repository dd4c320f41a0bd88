#pragma once

#include "text/tokenizer.h"

namespace tandem::summarize {

// Bytes, "<|endoftext|>" as 256, and the merge of "s" and "a": a token that lies across a boundary if one may.
inline Tokenizer small_tokenizer() {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  vocabulary.tokens.emplace_back(kEndOfText);
  vocabulary.specials = {256};
  vocabulary.tokens.emplace_back("sa");
  vocabulary.merges = {{'s', 'a', 257}};
  return Tokenizer(vocabulary);
}

}  // namespace tandem::summarize
