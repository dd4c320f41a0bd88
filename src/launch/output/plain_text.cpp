#include "launch/output/plain_text.h"

#include <algorithm>

#include "base/text.h"

namespace tandem {
namespace {

constexpr char kEscape = '\x1b';

// The length of the escape sequence at the start of `text`.
std::size_t command_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    const auto* const last = std::find_if(text.begin() + 2, text.end(), [](char c) { return c >= '@' && c <= '~'; });
    return std::min<std::size_t>(static_cast<std::size_t>(last - text.begin()) + 1, text.size());
  }
  if (text[1] == ']') {
    const std::size_t end = text.find('\a');
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  return 2;
}

// The length of the printable character at the start of `text`; 0 if there is none.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const bool is_control = first == 0xC2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xA0;
  if (is_control) return 0;
  for (std::size_t length = 2; length <= std::min<std::size_t>(4, text.size()); ++length) {
    if (is_utf8(text.substr(0, length))) return length;
  }
  return 0;
}

void remove_last_character(std::string& text) {
  const auto is_continuation = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  while (!text.empty() && is_continuation(text.back())) text.pop_back();
  if (!text.empty()) text.pop_back();
}

std::string printable(std::string_view line) {
  std::string result;
  while (!line.empty()) {
    std::size_t used = 1;
    if (line[0] == kEscape) {
      used = command_length(line);
    } else if (line[0] == '\t') {
      result += "    ";
    } else if (line[0] == '\b') {
      remove_last_character(result);
    } else {
      const std::size_t length = character_length(line);
      result += length > 0 ? std::string(line.substr(0, length)) : "?";
      used = std::max<std::size_t>(1, length);
    }
    line.remove_prefix(used);
  }
  return result;
}

// A carriage return moves to the start of the line: what follows it is what the user sees.
std::string_view last_state(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t back = line.rfind('\r');
  return back == std::string_view::npos ? line : line.substr(back + 1);
}

}  // namespace

std::vector<std::string> plain_lines(std::string_view output) {
  std::vector<std::string> lines;
  for (const std::string& line : split(output, '\n')) lines.push_back(printable(last_state(line)));
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> shortened(std::vector<std::string> lines, std::size_t limit) {
  if (lines.size() <= limit) return lines;
  const std::size_t head = limit / 3;
  const std::size_t left_out = lines.size() - limit + 1;
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(head);
  *begin = str("  ... ", left_out, " lines omitted ...");
  lines.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(left_out));
  return lines;
}

}  // namespace tandem
