#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "text/words.h"

namespace tandem {

// The longest common subsequence of a text with others, bit-parallel (Hyyrö, 2004).
class Lcs {
 public:
  // Sets the text. All words, also those of `other` below, are less than `num_words`.
  void index(std::span<const WordId> text, std::size_t num_words);

  bool has(WordId word) const { return first_[word] != kNone; }

  std::size_t length(std::span<const WordId> other) const;

  // The positions in `other` of the words of the subsequence, from last to first; of several longest ones, that of
  // rouge-score.
  std::vector<std::size_t> places(std::span<const WordId> other) const;

 private:
  // Occurrences of one word in the text: bit i is position 64 * block + i.
  struct Occurrences {
    std::size_t block;
    std::uint64_t bits;
    std::size_t next;  // index of the word's occurrences in a later block; kNone: no more
  };
  static constexpr std::size_t kNone = -1;

  // One bit per word of the text: 0 where the longest common subsequence with the prefix of `other` grows.
  using Row = std::span<std::uint64_t>;
  std::vector<std::uint64_t> first_row() const;
  void advance(Row row, WordId word) const;

  std::vector<WordId> text_;
  std::vector<std::size_t> first_;  // by word
  std::vector<Occurrences> occurrences_;
};

}  // namespace tandem
