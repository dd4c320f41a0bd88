#include "launch/output/line_marker.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

using Place = LineMarker::Place;

constexpr std::string_view kOurs = "tandem:";
constexpr std::size_t kLongestWord = 256;  // with what is hidden in it
constexpr char kEscape = '\x1b';

constexpr bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }
constexpr bool is_printable(char byte) { return byte >= ' ' && byte <= '~'; }
constexpr bool is_line_end(char byte) { return byte == '\n' || byte == '\r'; }
constexpr bool is_control(char byte) { return is_ascii(byte) && !is_printable(byte) && byte != '\t'; }
constexpr bool is_letter_or_digit(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

// ESC and a letter in one byte, or that byte in UTF-8; not the end of another character.
constexpr bool is_short_escape(char byte, char before) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= 0x80 && value < 0xA0 && (is_ascii(before) || before == '\xC2');
}

Place after_escape(char byte) {
  if (byte == '[') return Place::Parameters;
  return std::string_view("]PX^_k").find(byte) != std::string_view::npos ? Place::String : Place::Start;
}

// Some terminals obey a control byte within an escape code, and the code goes on after it.
Place after_control(Place place) { return place == Place::Escape || place == Place::Parameters ? place : Place::Start; }

Place after_printable(Place place, char byte) {
  switch (place) {
    case Place::Start: return is_letter_or_digit(byte) ? Place::Inside : Place::Start;
    case Place::Escape: return byte >= '0' ? after_escape(byte) : Place::Escape;
    case Place::Parameters: return byte >= '@' && byte != '[' ? Place::Start : Place::Parameters;
    case Place::Inside:
    case Place::String: return place;
  }
  return place;
}

Place next_place(Place place, char byte, char before) {
  if (is_printable(byte)) return after_printable(place, byte);
  if (is_line_end(byte)) return Place::Start;
  if (byte == kEscape) return Place::Escape;
  if (is_short_escape(byte, before)) return after_escape(static_cast<char>(byte - 0x40));
  return is_control(byte) ? after_control(place) : place;
}

// The number of bytes that change nothing inside a line: all but control bytes and what may be a short escape.
std::size_t plain_length(std::string_view text) {
  constexpr std::size_t kBlock = 32;  // the compiler makes a few instructions of a block
  const auto is_plain = [](char byte) { return (static_cast<unsigned char>(byte) & 0x60U) != 0; };
  std::size_t length = 0;
  for (; length + kBlock <= text.size(); length += kBlock) {
    unsigned strange = 0;
    for (std::size_t i = 0; i < kBlock; ++i) strange |= is_plain(text[length + i]) ? 0U : 1U;
    if (strange != 0) break;
  }
  while (length < text.size() && is_plain(text[length])) ++length;
  return length;
}

enum class Answer { No, Yes, TooEarly };

// Whether the text, of which the first byte fits, begins with "tandem:", with or without something invisible in it.
Answer begins_as_ours(std::string_view text) {
  std::size_t num_found = 1;
  Place place = Place::Start;
  for (std::size_t i = 1; i < std::min(text.size(), kLongestWord); ++i) {
    const bool is_visible = place == Place::Start && is_printable(text[i]);
    const bool ends_word = is_visible ? text[i] != kOurs[num_found] : is_line_end(text[i]) || text[i] == '\t';
    if (ends_word) return Answer::No;
    if (is_visible) {
      ++num_found;
    } else {
      place = next_place(place, text[i], text[i - 1]);
    }
    if (num_found == kOurs.size() || place == Place::String) return Answer::Yes;
  }
  return text.size() >= kLongestWord ? Answer::Yes : Answer::TooEarly;
}

}  // namespace

std::string LineMarker::mark(std::string_view bytes, const std::string& prefix, Clock::time_point now) {
  const std::string joined = held_.empty() ? "" : held_ + std::string(bytes);
  const std::string_view text = held_.empty() ? bytes : joined;
  if (!holds()) since_ = now;
  std::size_t num_shown = std::exchange(num_shown_, 0);
  held_.clear();
  std::string shown;
  const auto show_to = [&](std::size_t end) {
    end = std::max(num_shown, end);
    shown += text.substr(num_shown, end - num_shown);
    num_shown = end;
  };
  for (std::size_t at = find_word(text, 0); at < text.size(); at = find_word(text, at + 1)) {
    const Answer answer = begins_as_ours(text.substr(at));
    if (answer != Answer::No) show_to(at);
    if (answer == Answer::Yes) shown += prefix;
    if (answer == Answer::TooEarly) {
      held_ = text.substr(at);
      num_shown_ = num_shown - at;
      if (at > 0) since_ = now;
      return shown;
    }
    pass(text[at], ' ');
  }
  show_to(text.size());
  if (!text.empty()) last_ = text.back();
  return shown;
}

// The next place where a word of ours may begin. All bytes before it are passed.
std::size_t LineMarker::find_word(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (place_ == Place::Inside) {
      at += plain_length(text.substr(at));
      if (at == text.size()) break;
    } else if (text[at] == kOurs[0]) {
      return at;
    }
    pass(text[at], at == 0 ? last_ : text[at - 1]);
  }
  return text.size();
}

void LineMarker::pass(char byte, char before) {
  place_ = next_place(place_, byte, before);
  if (is_line_end(byte)) is_line_start_ = true;
  if (place_ == Place::Inside) is_line_start_ = false;
}

std::string LineMarker::release(const std::string& prefix) {
  if (is_line_start_ && place_ == Place::Start) return prefix + end();
  return held_.substr(std::exchange(num_shown_, held_.size()));
}

std::string LineMarker::end() {
  std::string rest = held_.substr(num_shown_);
  *this = LineMarker();
  return rest;
}

}  // namespace tandem
