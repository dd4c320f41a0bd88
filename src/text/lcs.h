#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "text/words.h"

namespace tandem {

// The longest common subsequence of one text with others, 64 words at a time (Hyyrö, 2004).
class Lcs {
 public:
  // Takes another text. All words, also those of `other` below, have numbers below `num_words`.
  void index(std::span<const WordId> text, std::size_t num_words);

  bool has(WordId word) const { return first_[word] != kNone; }

  std::size_t length(std::span<const WordId> other) const;

  // Which words of `other` make up the subsequence, from the last to the first; where several are as long, those that
  // rouge-score takes.
  std::vector<std::size_t> places(std::span<const WordId> other) const;

 private:
  // Some occurrences of one word in the text: bit i for place 64 * block + i.
  struct Occurrences {
    std::size_t block;
    std::uint64_t bits;
    std::size_t next;  // those of the same word in the next block that has any; kNone: there are no more
  };
  static constexpr std::size_t kNone = -1;

  // A row has a bit for each word of the text: 0 where the longest common subsequence with that much of `other` grows.
  using Row = std::span<std::uint64_t>;
  std::vector<std::uint64_t> first_row() const;
  void advance(Row row, WordId word) const;

  std::vector<WordId> text_;
  std::vector<std::size_t> first_;  // of a word
  std::vector<Occurrences> occurrences_;
};

}  // namespace tandem
