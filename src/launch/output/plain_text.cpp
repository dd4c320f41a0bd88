#include "launch/output/plain_text.h"

#include "base/printable.h"
#include "base/text.h"

namespace tandem {
namespace {

void remove_last_character(std::string& text) {
  const auto is_continuation = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  while (!text.empty() && is_continuation(text.back())) text.pop_back();
  if (!text.empty()) text.pop_back();
}

std::string without_backspaces(std::string_view line) {
  std::string result;
  for (const char byte : line) {
    if (byte == '\b') {
      remove_last_character(result);
    } else {
      result += byte;
    }
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
  for (const std::string& line : split(output, '\n')) {
    lines.push_back(printable_line(without_backspaces(last_state(line))));
  }
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
