#include "base/printable.h"

#include <algorithm>

#include "base/text.h"

namespace tandem {
namespace {

constexpr char kEscape = '\x1b';

// ESC [, parameters, and one final byte.
std::size_t control_sequence_length(std::string_view text) {
  std::size_t end = 2;
  while (end < text.size() && text[end] >= ' ' && text[end] <= '?') ++end;
  const bool is_complete = end < text.size() && text[end] >= '@' && text[end] <= '~';
  return is_complete ? end + 1 : end;
}

// ESC ], ESC P and the like, up to BEL or ESC \. Only the first two bytes if there is no end, to hide nothing.
std::size_t string_length(std::string_view text) {
  const std::size_t end = text.find_first_of("\a\x1b", 2);
  if (end == text.npos) return 2;
  return text[end] == kEscape && text.substr(end).starts_with("\x1b\\") ? end + 2 : end + (text[end] == '\a' ? 1 : 0);
}

std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') return control_sequence_length(text);
  if (std::string_view("]PX^_").find(text[1]) != std::string_view::npos) return string_length(text);
  return text[1] >= ' ' && text[1] <= '~' ? 2 : 1;
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

}  // namespace

std::string printable_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    std::size_t used = 1;
    if (text[0] == kEscape) {
      used = escape_length(text);
    } else if (text[0] == '\t') {
      line += "    ";
    } else if (text[0] == '\n' || text[0] == '\r') {
      line += ' ';
    } else {
      const std::size_t length = character_length(text);
      line += length > 0 ? text.substr(0, length) : "?";
      used = std::max<std::size_t>(1, length);
    }
    text.remove_prefix(used);
  }
  return line;
}

std::string printable_text(std::string_view text, std::string_view indent) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line = printable_line(line);
  return join(lines, str('\n', indent));
}

}  // namespace tandem
