#include "text/stemmer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace tandem {
namespace {

struct Rule {
  std::string_view suffix;
  std::string_view replacement;
  std::size_t kept = 0;  // letters of the suffix that count for the measure
};

constexpr std::array<Rule, 16> kIrregular{{{"sky", "sky"},
                                           {"skies", "sky"},
                                           {"dying", "die"},
                                           {"lying", "lie"},
                                           {"tying", "tie"},
                                           {"news", "news"},
                                           {"inning", "inning"},
                                           {"innings", "inning"},
                                           {"outing", "outing"},
                                           {"outings", "outing"},
                                           {"canning", "canning"},
                                           {"cannings", "canning"},
                                           {"howe", "howe"},
                                           {"proceed", "proceed"},
                                           {"exceed", "exceed"},
                                           {"succeed", "succeed"}}};

constexpr std::array<Rule, 4> kPlurals{{{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}}};

constexpr std::array<Rule, 3> kLostE{{{"at", "ate"}, {"bl", "ble"}, {"iz", "ize"}}};

constexpr std::array<Rule, 1> kAlli{{{"alli", "al"}}};

constexpr std::array<Rule, 21> kDoubleSuffixes{
    {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},   {"izer", "ize"},  {"bli", "ble"},
     {"entli", "ent"},   {"eli", "e"},       {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"},
     {"alism", "al"},    {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"},
     {"biliti", "ble"},  {"fulli", "ful"},   {"logi", "log", 1}}};

constexpr std::array<Rule, 7> kThirdSuffixes{
    {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""}}};

constexpr std::array<Rule, 20> kLastSuffixes{
    {{"al", ""},  {"ance", ""},  {"ence", ""}, {"er", ""},  {"ic", ""},       {"able", ""},     {"ible", ""},
     {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"sion", "s", 1}, {"tion", "t", 1}, {"ou", ""},
     {"ism", ""}, {"ate", ""},   {"iti", ""},  {"ous", ""}, {"ive", ""},      {"ize", ""}}};

constexpr std::array<Rule, 1> kDoubleL{{{"ll", "l", 1}}};

// v for each vowel, c for each consonant. A y after a consonant is a vowel.
std::string shape_of(std::string_view word) {
  std::string shape;
  for (const char letter : word) {
    const bool vowel =
        std::string_view("aeiou").find(letter) != std::string_view::npos || (letter == 'y' && shape.ends_with('c'));
    shape.push_back(vowel ? 'v' : 'c');
  }
  return shape;
}

bool has_vowel(std::string_view word) { return shape_of(word).find('v') != std::string::npos; }

// Porter's m: the number of vowel-consonant sequences.
int measure(std::string_view word) {
  const std::string shape = shape_of(word);
  int count = 0;
  for (std::size_t i = 1; i < shape.size(); ++i) count += shape[i - 1] == 'v' && shape[i] == 'c' ? 1 : 0;
  return count;
}

bool ends_double_consonant(std::string_view word) {
  return word.size() >= 2 && word.back() == word[word.size() - 2] && shape_of(word).back() == 'c';
}

// Porter's *o, as in "hop"; in NLTK also a whole word such as "us".
bool ends_short(std::string_view word) {
  const std::string shape = shape_of(word);
  return shape == "vc" || (shape.ends_with("cvc") && std::string_view("wxy").find(word.back()) == std::string::npos);
}

// The first rule whose suffix matches is used, even if the measure of the stem is too small for it to apply.
void apply(std::string& word, std::span<const Rule> rules, int min_measure) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return word.ends_with(r.suffix); });
  if (rule == rules.end()) return;
  const std::size_t length = word.size() - rule->suffix.size();
  if (measure(std::string_view(word).substr(0, length + rule->kept)) < min_measure) return;
  word.replace(length, std::string::npos, rule->replacement);
}

void remove_plural(std::string& word) {
  if (word.size() == 4 && word.ends_with("ies")) {
    word.pop_back();
  } else {
    apply(word, kPlurals, 0);
  }
}

// The length of the suffix "ed" or "ing" after a vowel, or 0.
std::size_t past_or_gerund(std::string_view word) {
  for (const std::string_view suffix : {"ed", "ing"}) {
    if (word.ends_with(suffix) && has_vowel(word.substr(0, word.size() - suffix.size()))) return suffix.size();
  }
  return 0;
}

// After "ed" or "ing" was removed: restores an e, or removes a doubled consonant. "hopp" gives "hop", "fil" gives
// "file".
void mend(std::string& word) {
  const std::size_t size = word.size();
  apply(word, kLostE, 0);
  if (word.size() > size) return;
  if (ends_double_consonant(word)) {
    if (std::string_view("lsz").find(word.back()) == std::string::npos) word.pop_back();
  } else if (measure(word) == 1 && ends_short(word)) {
    word.push_back('e');
  }
}

void remove_past_or_gerund(std::string& word) {
  if (word.ends_with("ied")) {
    word.resize(word.size() - (word.size() == 4 ? 1 : 2));
  } else if (word.ends_with("eed")) {
    if (measure(std::string_view(word).substr(0, word.size() - 3)) > 0) word.pop_back();
  } else if (const std::size_t length = past_or_gerund(word); length > 0) {
    word.resize(word.size() - length);
    mend(word);
  }
}

void replace_y(std::string& word) {
  if (word.size() > 2 && word.ends_with('y') && shape_of(word)[word.size() - 2] == 'c') word.back() = 'i';
}

void remove_e(std::string& word) {
  if (!word.ends_with('e')) return;
  const std::string_view rest = std::string_view(word).substr(0, word.size() - 1);
  const int m = measure(rest);
  if (m > 1 || (m == 1 && !ends_short(rest))) word.pop_back();
}

}  // namespace

std::string stem(std::string word) {
  const auto* const irregular = std::ranges::find(kIrregular, std::string_view(word), &Rule::suffix);
  if (irregular != kIrregular.end()) return std::string(irregular->replacement);
  if (word.size() <= 2) return word;
  remove_plural(word);
  remove_past_or_gerund(word);
  replace_y(word);
  apply(word, kAlli, 1);
  apply(word, kDoubleSuffixes, 1);
  apply(word, kThirdSuffixes, 1);
  apply(word, kLastSuffixes, 2);
  remove_e(word);
  apply(word, kDoubleL, 2);
  return word;
}

}  // namespace tandem
