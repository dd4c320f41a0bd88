#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tandem {

namespace detail {

void append(std::string& text, std::string_view part);
void append(std::string& text, char part);
void append_integer(std::string& text, long long part);
void append_unsigned(std::string& text, unsigned long long part);
void append(std::string& text, float part);
void append(std::string& text, double part);

// Templates, so that a `const char*` is neither a bool nor a path.
template <std::same_as<bool> T>
void append(std::string& text, T part) {
  append(text, std::string_view(part ? "true" : "false"));
}

template <std::same_as<std::filesystem::path> T>
void append(std::string& text, const T& part) {
  append(text, std::string_view(part.native()));
}

template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) void append(std::string& text, T part) {
  if constexpr (std::is_signed_v<T>) {
    append_integer(text, part);
  } else {
    append_unsigned(text, part);
  }
}

}  // namespace detail

// Concatenates the parts. Floating-point numbers are written in the shortest form that parses back to the same bits,
// independent of the locale.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string text;
  (detail::append(text, parts), ...);
  return text;
}

// `number` with that many decimals, rounded as by printf: fixed(0.125, 2) is "0.12".
std::string fixed(double number, int decimals);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);

// The same for a message, which must stay readable whatever a file contains: the first ten parts, each cut to 200
// bytes, and how many more there are: "a, b, ... and 999990 more".
std::string join_some(std::span<const std::string> parts, std::string_view separator);

// Quoted for a POSIX shell, on one line: one word, or the words of a command.
std::string shell_quoted(std::string_view word);
std::string command_line(std::span<const std::string> words);

std::string_view trim(std::string_view text);

// The value of the first line "key:   value", spaces around the colon ignored; empty if there is none.
std::string value_of_line(std::string_view text, std::string_view key);
std::string replace_all(std::string text, std::string_view from, std::string_view to);

// "[2, 3]"
std::string list_text(std::span<const std::int64_t> numbers);

// "rank 3", "ranks 0, 2", "ranks 0-6, 9"
std::string ranks_text(std::vector<int> ranks);

// Parses all of `text`; nothing if it is not a number or out of range.
std::optional<long long> to_integer(std::string_view text);
std::optional<unsigned long long> to_unsigned(std::string_view text);

bool is_utf8(std::string_view text);

// The candidate closest to `word`: one that ends in ".word", else the one with the smallest edit distance (insertion,
// deletion, substitution, transposition), if that is at most a third of the word's length.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// Bytes in hexadecimal: "00ff".
std::string hex_text(std::string_view bytes);

}  // namespace tandem
