#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "text/vocabulary.h"

namespace tandem {

struct TrainVocabularyOptions {
  std::int64_t size = 50257;   // tokens: 256 bytes, "<|endoftext|>" as the last one, and what is merged
  std::int64_t min_count = 2;  // a pair that is seen less often is not merged: the vocabulary may stay smaller
};

// Learns merges as `tokenizers` does: again and again the pair of neighbours that is seen most often in the pieces of
// the texts; of several the one with the least left id, then the least right id. The ids of bytes are GPT-2's.
// The same texts give the same vocabulary, in any order.
Vocabulary train_vocabulary(std::span<const std::string> texts, const TrainVocabularyOptions& options);

}  // namespace tandem
