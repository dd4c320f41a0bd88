#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "text/vocabulary.h"

namespace tandem {

struct TrainVocabularyOptions {
  std::int64_t size = 50257;   // 256 bytes, merges, and "<|endoftext|>" as the last token
  std::int64_t min_count = 2;  // rarer pairs are not merged, so the vocabulary may be smaller
};

// Trains a byte-level BPE as `tokenizers` does: repeatedly merges the most frequent pair, of several the one with the
// smallest left id, then the smallest right id. The ids of bytes are GPT-2's. The order of the texts does not matter.
Vocabulary train_vocabulary(std::span<const std::string> texts, const TrainVocabularyOptions& options);

}  // namespace tandem
