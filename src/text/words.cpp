#include "text/words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "text/char_class.h"
#include "text/stemmer.h"

namespace tandem {
namespace {

constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";

// A short word is coded as a number of base 37 without zero digits; twelve digits fit into 64 bits.
constexpr std::uint64_t kRadix = kAlphabet.size() + 1;
constexpr std::size_t kMaxShort = 12;

// The digit of a byte's letter; 0: not a letter or digit.
constexpr std::array<std::uint8_t, 256> kDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    const auto digit = static_cast<std::uint8_t>(i + 1);
    const char letter = kAlphabet[i];
    digits[letter] = digit;
    if (letter >= 'a') digits[letter - 'a' + 'A'] = digit;
  }
  return digits;
}();

// The only two characters outside ASCII whose lower case contains ASCII letters.
constexpr std::string_view kKelvin = "\u212A";   // k
constexpr std::string_view kDottedI = "\u0130";  // i and a combining dot, which ends the word

struct WordLetter {
  std::uint8_t digit = 0;
  std::size_t num_bytes = 1;
};

WordLetter letter_at(std::string_view text, std::size_t at) {
  const std::uint8_t digit = kDigits[static_cast<unsigned char>(text[at])];
  if (digit != 0 || static_cast<unsigned char>(text[at]) < 0x80) return {.digit = digit};
  if (text.substr(at).starts_with(kKelvin)) return {.digit = kDigits['k'], .num_bytes = kKelvin.size()};
  if (text.substr(at).starts_with(kDottedI)) return {.digit = kDigits['i'], .num_bytes = kDottedI.size()};
  return {};
}

struct Spelling {
  std::string_view bytes;
  std::size_t length = 0;  // in letters
  std::uint64_t code = 0;  // of a short word
};

// The word that starts here; empty if none.
Spelling word_at(std::string_view text, std::size_t begin) {
  Spelling word;
  std::size_t end = begin;
  while (end < text.size()) {
    const auto [digit, num_bytes] = letter_at(text, end);
    if (digit == 0) break;
    ++word.length;
    word.code = word.code * kRadix + digit;
    end += num_bytes;
    if (num_bytes == kDottedI.size()) break;
  }
  word.bytes = text.substr(begin, end - begin);
  return word;
}

// The bytes of the letter or digit outside ASCII that starts here; 0 if none does.
std::size_t wide_letter_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 4;
  if (static_cast<unsigned char>(text[at]) < 0x80) return 0;
  const std::string_view rest = text.substr(at, kLongest);
  if (valid_utf8_prefix(rest) == 0) return 0;
  const auto [code_point, num_bytes] = first_code_point(rest.data());
  const CharClass kind = class_of(code_point);
  return kind == CharClass::Letter || kind == CharClass::Number ? num_bytes : 0;
}

std::string lower_case(std::string_view spelling) {
  std::string word;
  for (std::size_t at = 0; at < spelling.size();) {
    const auto [digit, num_bytes] = letter_at(spelling, at);
    word.push_back(kAlphabet[digit - 1]);
    at += num_bytes;
  }
  return word;
}

// Lines without words are left out.
void end_line(Words& words) {
  const std::size_t before = words.line_ends.empty() ? 0 : words.line_ends.back();
  if (words.ids.size() > before) words.line_ends.push_back(words.ids.size());
}

}  // namespace

Words WordNumbers::read(std::string_view text) {
  Words words;
  words.ids.reserve(text.size() / 4);
  for (std::size_t at = 0; at < text.size();) {
    const auto [bytes, length, code] = word_at(text, at);
    if (length > 0) {
      words.ids.push_back(length <= kMaxShort ? short_word(code, bytes) : long_word(bytes));
      at += bytes.size();
      continue;
    }
    const std::size_t width = tokens_ == RougeTokens::Characters ? wide_letter_at(text, at) : 0;
    if (width > 0) words.ids.push_back(new_word(std::string(text.substr(at, width))));
    if (text[at] == '\n') end_line(words);
    at += std::max<std::size_t>(width, 1);
  }
  end_line(words);
  return words;
}

WordId WordNumbers::short_word(std::uint64_t code, std::string_view spelling) {
  if (const ShortWord& known = place_of(code); known.code == code) return known.id;
  const WordId id = new_word(lower_case(spelling));
  if (2 * ++num_short_words_ > short_words_.size()) make_room();
  place_of(code) = {.code = code, .id = id};
  return id;
}

WordId WordNumbers::long_word(std::string_view spelling) {
  std::string word = lower_case(spelling);
  const auto known = long_words_.find(word);
  if (known != long_words_.end()) return known->second;
  return long_words_[word] = new_word(word);
}

WordId WordNumbers::new_word(std::string word) {
  const bool is_ascii = static_cast<unsigned char>(word.front()) < 0x80;
  if (stemming_ == Stemming::Porter && word.size() > 3 && is_ascii) word = stem(std::move(word));
  return stems_.try_emplace(std::move(word), static_cast<WordId>(stems_.size())).first->second;
}

// The slot of the word, or the free slot for it.
WordNumbers::ShortWord& WordNumbers::place_of(std::uint64_t code) {
  const std::size_t mask = short_words_.size() - 1;
  std::size_t place = (code * 0x9e3779b97f4a7c15) >> 32 & mask;
  while (short_words_[place].code != code && short_words_[place].code != 0) place = (place + 1) & mask;
  return short_words_[place];
}

void WordNumbers::make_room() {
  const auto words = std::exchange(short_words_, std::vector<ShortWord>(2 * short_words_.size()));
  for (const ShortWord& word : words) {
    if (word.code != 0) place_of(word.code) = word;
  }
}

void LetterCount::add(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const bool is_kept = letter_at(text, at).digit != 0;
    const std::size_t width = is_kept ? 0 : wide_letter_at(text, at);
    num_letters_ += is_kept || width > 0 ? 1 : 0;
    num_dropped_ += width > 0 ? 1 : 0;
    at += std::max<std::size_t>(width, 1);
  }
}

std::string LetterCount::note() const {
  return str("ROUGE drops ", 100 * num_dropped_ / std::max<std::size_t>(num_letters_, 1),
             " % of the letters of these texts: by rouge-score's rule, all but a-z and 0-9; --rouge-tokens characters "
             "counts each of them as a word");
}

}  // namespace tandem
