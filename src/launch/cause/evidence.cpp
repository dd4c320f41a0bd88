#include "launch/cause/evidence.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/text.h"
#include "launch/cause/error_words.h"
#include "launch/output/plain_text.h"

namespace tandem {
namespace {

constexpr std::size_t kMaxTraceback = 40;
constexpr std::size_t kMaxMessage = 10;     // lines of an exception's message and notes, where only the end bounds them
constexpr std::size_t kSearchedLines = 15;  // where a line that speaks of an error is looked for
constexpr std::size_t kMaxLinesAfter = 60;  // a traceback further up was handled, and the program went on
constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kGroupTraceback = "+ Exception Group Traceback (most recent call last):";
constexpr std::string_view kOriginal = "Original Traceback (most recent call last):";
constexpr std::string_view kTerminate = "terminate called ";
constexpr std::string_view kWhat = "  what():  ";
constexpr std::string_view kFatalPython = "Fatal Python error: ";

struct Line {
  std::string text;
  bool marked = false;  // torch begins each line of an uncaught exception with "[rank3]: "
};

// One story of a failure: lines [begin, end), of which the message is [message, end).
struct Story {
  std::size_t begin = 0;
  std::size_t message = 0;
  std::size_t end = 0;
  std::string error;
  bool about_peer = false;
};

Line parse_line(std::string text) {
  constexpr std::string_view kMark = "[rank";
  if (!text.starts_with(kMark)) return {.text = std::move(text)};
  const std::size_t digits_end = text.find_first_not_of("0123456789", kMark.size());
  if (digits_end == kMark.size() || text.compare(std::min(digits_end, text.size()), 2, "]:") != 0)
    return {.text = text};
  const std::size_t begin = digits_end + 2;
  const bool marked = text.size() == begin || text[begin] == ' ';
  return {.text = text.substr(marked ? std::min(begin + 1, text.size()) : begin), .marked = marked};
}

std::vector<Line> parse_lines(std::string_view output) {
  std::vector<Line> lines;
  for (std::string& text : plain_lines(output)) lines.push_back(parse_line(std::move(text)));
  return lines;
}

bool is_blank(const Line& line) { return trim(line.text).empty(); }
bool is_indented(const Line& line) { return line.text.starts_with(' '); }
bool is_traceback(const Line& line) { return line.text == kTraceback || trim(line.text) == kGroupTraceback; }

bool begins_story(const Line& line) {
  return is_traceback(line) || line.text.starts_with(kTerminate) || line.text.starts_with(kFatalPython);
}

std::string joined_text(std::span<const Line> lines) {
  std::vector<std::string> texts;
  for (const Line& line : lines) texts.push_back(line.text);
  return join(texts, "\n");
}

std::span<const Line> range(std::span<const Line> lines, std::size_t begin, std::size_t end) {
  return lines.subspan(begin, end - begin);
}

// Where the message that begins at `first` ends. A marked one ends with its marks. Another one ends where a library or
// another story begins; if neither does for long, it is one line, and what follows is other output.
std::size_t message_end(std::span<const Line> lines, std::size_t first) {
  std::size_t counted = 0;
  std::size_t end = first + 1;
  bool in_original = false;
  for (std::size_t i = first + 1; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (is_blank(line)) continue;
    if (is_library_noise(line.text) || begins_story(line) || line.marked != lines[first].marked) return end;
    in_original = in_original ? is_indented(line) : line.text == kOriginal;
    if (!in_original && !line.marked && ++counted > kMaxMessage) return first + 1;
    end = i + 1;
  }
  return end;
}

bool is_chain_word(const Line& line) {
  return line.text == "During handling of the above exception, another exception occurred:" ||
         line.text == "The above exception was the direct cause of the following exception:";
}

// Python itself stops an exception's message at the word that chains it to the next.
std::size_t stop_at_chain(std::span<const Line> lines, std::size_t first, std::size_t end) {
  std::size_t stop = first + 1;
  for (std::size_t i = first + 1; i < end && !is_chain_word(lines[i]); ++i) {
    if (!is_blank(lines[i])) stop = i + 1;
  }
  return stop;
}

Story make_story(std::span<const Line> lines, std::size_t begin, std::size_t message, std::size_t end) {
  return {.begin = begin,
          .message = message,
          .end = end,
          .error = lines[message].text,
          .about_peer = is_about_peer(joined_text(range(lines, message, end)))};
}

// "ValueError: text", "package.Error", "KeyboardInterrupt"
bool names_exception(const Line& line) {
  const std::size_t end =
      line.text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  return end != 0 && (end == std::string::npos || line.text[end] == ':');
}

// Between the frames and the exception there may be lines that another thread wrote.
std::optional<Story> python_story(std::span<const Line> lines, std::size_t begin) {
  for (std::size_t i = begin + 1; i < lines.size() && !begins_story(lines[i]); ++i) {
    if (names_exception(lines[i])) return make_story(lines, begin, i, stop_at_chain(lines, i, message_end(lines, i)));
  }
  return std::nullopt;
}

// An exception group draws a frame of | and + around its members.
Story group_story(std::span<const Line> lines, std::size_t begin) {
  const auto in_frame = [](const Line& line) {
    const std::string_view text = trim(line.text);
    return is_indented(line) && (text.starts_with('|') || text.starts_with('+'));
  };
  std::size_t end = begin + 1;
  std::string error;
  while (end < lines.size() && in_frame(lines[end])) {
    const std::string_view text = trim(lines[end].text);
    if (error.empty() && text.starts_with("| ") && text[2] != ' ') error = text.substr(2);
    ++end;
  }
  return {.begin = begin, .message = begin, .end = end, .error = error, .about_peer = is_about_peer(error)};
}

Story terminate_story(std::span<const Line> lines, std::size_t begin) {
  const std::size_t message = begin + 1;
  const bool says_what = message < lines.size() && lines[message].text.starts_with(kWhat);
  if (!says_what) return make_story(lines, begin, begin, begin + 1);
  Story story = make_story(lines, begin, message, message_end(lines, message));
  story.error = story.error.substr(kWhat.size());
  return story;
}

// The threads that come after the one that faulted are left out. The line before it all may say why.
Story fault_story(std::span<const Line> lines, std::size_t begin) {
  const std::size_t message = begin > 0 && speaks_of_error(lines[begin - 1].text) ? begin - 1 : begin;
  Story story = make_story(lines, message, message, begin + 1);
  bool is_current = false;
  for (std::size_t i = begin + 1; i < lines.size() && !begins_story(lines[i]); ++i) {
    if (is_blank(lines[i]) && is_current) break;
    is_current = is_current || lines[i].text.starts_with("Current thread ");
    if (is_indented(lines[i]) || lines[i].text.find("hread 0x") != std::string::npos) story.end = i + 1;
  }
  return story;
}

std::optional<Story> story_at(std::span<const Line> lines, std::size_t i) {
  if (lines[i].text == kTraceback) return python_story(lines, i);
  if (is_traceback(lines[i])) return group_story(lines, i);
  if (lines[i].text.starts_with(kTerminate)) return terminate_story(lines, i);
  if (lines[i].text.starts_with(kFatalPython)) return fault_story(lines, i);
  return std::nullopt;
}

// Python shows a file that it cannot read without the word Traceback.
std::optional<Story> syntax_story(std::span<const Line> lines, std::size_t message) {
  constexpr std::array<std::string_view, 3> kNames = {"SyntaxError: ", "IndentationError: ", "TabError: "};
  const auto is_named = [&](std::string_view name) { return lines[message].text.starts_with(name); };
  if (std::ranges::none_of(kNames, is_named)) return std::nullopt;
  std::size_t begin = message;
  while (begin > 0 && is_indented(lines[begin - 1])) --begin;
  return make_story(lines, begin, message, message + 1);
}

std::size_t ordinary_lines(std::span<const Line> lines) {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [](const Line& line) { return !is_blank(line) && !is_library_noise(line.text); }));
}

// One story of two: the second is chained to the first, or is the stack of the process that the first brought down.
bool is_continued(std::span<const Line> lines, const Story& first, const Story& second) {
  const auto between = range(lines, first.end, second.begin);
  if (lines[second.begin].text.starts_with(kFatalPython)) return ordinary_lines(between) == 0;
  return std::ranges::any_of(between, is_chain_word) && ordinary_lines(between) == 1;
}

// The first of a chain is what happened; the last is what became of it, and what Python calls the error. A lost peer
// that follows an error of its own, or the abort that follows a terminate, says nothing new.
Story merged(std::span<const Line> lines, const Story& first, const Story& second) {
  const bool keeps_first =
      (second.about_peer && !first.about_peer) || lines[second.begin].text.starts_with(kFatalPython);
  return {.begin = first.begin,
          .message = keeps_first ? first.message : second.message,
          .end = second.end,
          .error = keeps_first ? first.error : second.error,
          .about_peer = first.about_peer};
}

std::vector<Story> find_stories(std::span<const Line> lines) {
  std::vector<Story> stories;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto story = story_at(lines, i);
    if (!story) story = syntax_story(lines, i);
    if (!story) continue;
    i = story->end - 1;
    if (!stories.empty()) story->begin = std::max(story->begin, stories.back().end);
    if (!stories.empty() && is_continued(lines, stories.back(), *story)) {
      stories.back() = merged(lines, stories.back(), *story);
    } else {
      stories.push_back(*story);
    }
  }
  return stories;
}

// The last story, or the one just before it where only that one is the rank's own: torch's watchdog brings down a
// process that is about to end with an exception.
const Story& decisive(std::span<const Line> lines, const std::vector<Story>& stories) {
  constexpr std::size_t kClose = 5;
  const Story& last = stories.back();
  if (!last.about_peer || stories.size() < 2) return last;
  const Story& previous = stories[stories.size() - 2];
  const bool is_close = ordinary_lines(range(lines, previous.end, last.begin)) <= kClose;
  return is_close && !previous.about_peer ? previous : last;
}

std::string traceback_of(std::span<const Line> lines) {
  std::vector<std::string> texts;
  for (const Line& line : lines) {
    if (!is_library_noise(line.text)) texts.push_back(line.text);
  }
  return join(shortened(std::move(texts), kMaxTraceback), "\n");
}

// No story is told: the last line that speaks of an error, with the hint that our own workers put below it.
Evidence find_error_line(std::span<const Line> lines) {
  const std::size_t oldest = lines.size() > kSearchedLines ? lines.size() - kSearchedLines : 0;
  for (std::size_t i = lines.size(); i-- > oldest;) {
    if (!speaks_of_error(lines[i].text)) continue;
    Evidence evidence;
    evidence.error = lines[i].text;
    evidence.about_peer = is_about_peer(evidence.error);
    const bool has_hint = i + 1 < lines.size() && lines[i + 1].text.starts_with("hint: ");
    if (has_hint) evidence.traceback = str(lines[i].text, '\n', lines[i + 1].text);
    evidence.at_end = ordinary_lines(lines.subspan(i + (has_hint ? 2 : 1))) == 0;
    return evidence;
  }
  return {};
}

}  // namespace

Evidence find_evidence(std::string_view output) {
  const std::vector<Line> lines = parse_lines(output);
  const std::vector<Story> stories = find_stories(lines);
  const std::size_t lines_after = stories.empty() ? 0 : ordinary_lines(std::span(lines).subspan(stories.back().end));
  if (stories.empty() || lines_after > kMaxLinesAfter) return find_error_line(lines);
  const Story& story = decisive(lines, stories);
  return {.error = std::string(trim(story.error)),
          .traceback = traceback_of(range(lines, story.begin, story.end)),
          .about_peer = story.about_peer,
          .at_end = lines_after == 0};
}

}  // namespace tandem
