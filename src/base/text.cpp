#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/utf8.h"

namespace tandem {
namespace {

template <class Number>
void append_number(std::string& text, Number number) {
  std::array<char, 40> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), result.ptr);
}

template <class Number>
std::optional<Number> to_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

// Optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> slips(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) slips[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) slips[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = slips[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      slips[i][j] = std::min({slips[i - 1][j] + 1, slips[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) slips[i][j] = std::min(slips[i][j], slips[i - 2][j - 2] + 1);
    }
  }
  return slips[a.size()][b.size()];
}

}  // namespace

namespace detail {

void append(std::string& text, std::string_view part) { text.append(part); }
void append(std::string& text, char part) { text.push_back(part); }
void append_integer(std::string& text, long long part) { append_number(text, part); }
void append_unsigned(std::string& text, unsigned long long part) { append_number(text, part); }
void append(std::string& text, float part) { append_number(text, part); }
void append(std::string& text, double part) { append_number(text, part); }

}  // namespace detail

std::string fixed(double number, int decimals) {
  std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, "%.*f", decimals, number)), '\0');
  std::snprintf(text.data(), text.size() + 1, "%.*f", decimals, number);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text.append(separator);
    text.append(part);
  }
  return text;
}

std::string join_some(std::span<const std::string> parts, std::string_view separator) {
  constexpr std::size_t kMaxParts = 10;
  constexpr std::size_t kMaxLength = 200;
  const auto shortened = [](const std::string& part) {
    if (part.size() <= kMaxLength) return part;
    std::size_t end = kMaxLength;
    while (end > 0 && (static_cast<unsigned char>(part[end]) & 0xC0U) == 0x80U) --end;  // inside a UTF-8 character
    return str(std::string_view(part).substr(0, end), "...");
  };
  std::vector<std::string> shown;
  for (const std::string& part : parts.first(std::min(parts.size(), kMaxParts))) shown.push_back(shortened(part));
  if (parts.size() > kMaxParts) shown.push_back(str("... and ", parts.size() - kMaxParts, " more"));
  return join(shown, separator);
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return std::string(word);
  std::string quoted;
  for (const char& byte : word) {
    const auto number = static_cast<unsigned char>(byte);
    if (byte == '\'') {
      quoted += "'\\''";
    } else if (byte == '\n') {
      quoted += "'$'\\n''";
    } else if (number < ' ' || number == 0x7F) {
      quoted += str("'$'\\x", hex_text({&byte, 1}), "''");
    } else {
      quoted += byte;
    }
  }
  return str('\'', quoted, '\'');
}

std::string command_line(std::span<const std::string> words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quoted(word));
  return join(quoted, " ");
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string value_of_line(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != line.npos && trim(std::string_view(line).substr(0, colon)) == key) {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return {};
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string list_text(std::span<const std::int64_t> numbers) {
  std::vector<std::string> parts;
  for (const std::int64_t number : numbers) parts.push_back(str(number));
  return str('[', join(parts, ", "), ']');
}

std::string ranks_text(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    constexpr std::size_t kFold = 3;
    if (end - begin >= kFold) {
      parts.push_back(str(ranks[begin], '-', ranks[end - 1]));
    } else {
      end = begin + 1;
      parts.push_back(str(ranks[begin]));
    }
    begin = end;
  }
  return str(ranks.size() == 1 ? "rank " : "ranks ", join(parts, ", "));
}

std::optional<long long> to_integer(std::string_view text) { return to_number<long long>(text); }
std::optional<unsigned long long> to_unsigned(std::string_view text) { return to_number<unsigned long long>(text); }

bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 200;  // nobody types more, and the distance takes the square of it
  if (word.size() > kLongest) return std::nullopt;
  const std::string ending = str('.', word);
  std::optional<std::string> best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.ends_with(ending)) return candidate;
    if (candidate.size() >= word.size() + fewest) continue;
    const std::size_t slips = edit_distance(word, candidate);
    if (slips >= fewest) continue;
    fewest = slips;
    best = candidate;
  }
  return best;
}

std::string hex_text(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 0xfU]);
  }
  return text;
}

}  // namespace tandem
