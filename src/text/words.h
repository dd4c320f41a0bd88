#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tandem {

using WordId = std::uint32_t;

// The words of a text as numbers, and where its lines end; lines without a word are left out.
struct Words {
  std::vector<WordId> ids;
  std::vector<std::size_t> line_ends;
};

enum class Stemming { None, Porter };

// Gives words their numbers as rouge-score splits a text: runs of a-z and 0-9 after lower-casing; with stemming, words
// of four letters or more that have the same stem have the same number. What was seen is remembered.
class WordNumbers {
 public:
  explicit WordNumbers(Stemming stemming) : stemming_(stemming) {}

  Words read(std::string_view text);

  std::size_t size() const { return stems_.size(); }  // every number is below

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Numbers = std::unordered_map<std::string, WordId, Hash, std::equal_to<>>;

  WordId number_of(std::string_view word);

  Stemming stemming_;
  Numbers stems_;
  Numbers words_;  // with the number of their stem
};

}  // namespace tandem
