#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem {

using WordId = std::uint32_t;

// The words of a text as numbers, and the ends of its lines; lines without words are omitted.
struct Words {
  std::vector<WordId> ids;
  std::vector<std::size_t> line_ends;
};

enum class Stemming { None, Porter };

// What a word is, besides runs of a-z and 0-9.
enum class RougeTokens {
  Words,       // nothing: all other characters are dropped, as by rouge-score
  Characters,  // each letter or digit of another script, such as a Chinese character
};

inline std::vector<std::pair<std::string, RougeTokens>> enum_names(RougeTokens) {
  return {{"words", RougeTokens::Words}, {"characters", RougeTokens::Characters}};
}

// Numbers the words of texts, tokenized as by rouge-score: runs of a-z and 0-9 after lower-casing; with stemming, words
// of more than three letters with the same stem have the same number. The numbers stay the same from text to text.
class WordNumbers {
 public:
  explicit WordNumbers(Stemming stemming, RougeTokens tokens = RougeTokens::Words)
      : stemming_(stemming), tokens_(tokens) {}

  Words read(std::string_view text);

  std::size_t size() const { return stems_.size(); }  // all numbers are less

 private:
  struct ShortWord {
    std::uint64_t code = 0;  // 0: free slot
    WordId id = 0;
  };
  using Numbers = std::unordered_map<std::string, WordId>;

  WordId short_word(std::uint64_t code, std::string_view spelling);
  WordId long_word(std::string_view spelling);
  WordId new_word(std::string word);
  ShortWord& place_of(std::uint64_t code);
  void make_room();

  Stemming stemming_;
  RougeTokens tokens_;
  Numbers stems_;
  Numbers long_words_;                                                 // to the number of the stem
  std::vector<ShortWord> short_words_ = std::vector<ShortWord>(1024);  // a hash table, at most half full
  std::size_t num_short_words_ = 0;
};

// How many letters and digits texts have, and how many of them rouge-score drops: all but a-z and 0-9.
class LetterCount {
 public:
  void add(std::string_view text);

  bool are_most_dropped() const { return 2 * num_dropped_ > num_letters_; }
  std::string note() const;  // what to tell the user then: "rouge drops 97 % of the letters, ..."

 private:
  std::size_t num_letters_ = 0;
  std::size_t num_dropped_ = 0;
};

}  // namespace tandem
