#include "text/words.h"

#include <array>

#include "text/stemmer.h"

namespace tandem {
namespace {

// The letter or digit that a byte stands for, in lower case; 0 for all else.
constexpr std::array<char, 256> kLetters = [] {
  std::array<char, 256> letters{};
  for (std::size_t i = '0'; i <= '9'; ++i) letters[i] = static_cast<char>(i);
  for (std::size_t i = 'a'; i <= 'z'; ++i) letters[i] = letters[i - 'a' + 'A'] = static_cast<char>(i);
  return letters;
}();

// Of all characters outside of ASCII, these two have ASCII letters in their lower case.
constexpr std::string_view kKelvin = "\u212A";   // k
constexpr std::string_view kDottedI = "\u0130";  // i and a combining dot, which ends a word

struct Letter {
  char lower;          // 0: none, so a word ends here
  std::size_t length;  // in bytes
};

Letter letter_at(std::string_view text, std::size_t at) {
  const char lower = kLetters[static_cast<unsigned char>(text[at])];
  if (lower != 0 || static_cast<unsigned char>(text[at]) < 0x80) return {.lower = lower, .length = 1};
  if (text.substr(at).starts_with(kKelvin)) return {.lower = 'k', .length = kKelvin.size()};
  if (text.substr(at).starts_with(kDottedI)) return {.lower = 'i', .length = kDottedI.size()};
  return {.lower = 0, .length = 1};
}

}  // namespace

Words WordNumbers::read(std::string_view text) {
  Words words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.ids.push_back(number_of(word));
    word.clear();
  };
  const auto end_line = [&] {
    const std::size_t begin = words.line_ends.empty() ? 0 : words.line_ends.back();
    if (words.ids.size() > begin) words.line_ends.push_back(words.ids.size());
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto [lower, length] = letter_at(text, at);
    if (lower != 0) word.push_back(lower);
    if (lower == 0 || length == kDottedI.size()) end_word();
    if (text[at] == '\n') end_line();
    at += length;
  }
  end_word();
  end_line();
  return words;
}

WordId WordNumbers::number_of(std::string_view word) {
  const auto known = words_.find(word);
  if (known != words_.end()) return known->second;
  const bool stems = stemming_ == Stemming::Porter && word.size() > 3;
  const auto next = static_cast<WordId>(stems_.size());
  const WordId number = stems_.try_emplace(stems ? stem(std::string(word)) : std::string(word), next).first->second;
  words_.emplace(word, number);
  return number;
}

}  // namespace tandem
