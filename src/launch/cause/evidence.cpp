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
constexpr std::size_t kMaxMessage = 10;     // lines of an exception's message if nothing else ends it
constexpr std::size_t kSearchedLines = 15;  // at the end, for a line that reports an error
constexpr std::size_t kMaxLinesAfter = 60;  // with more lines after it, a traceback was handled by the program
constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kGroupTraceback = "+ Exception Group Traceback (most recent call last):";
constexpr std::string_view kOriginal = "Original Traceback (most recent call last):";
constexpr std::string_view kTerminate = "terminate called ";
constexpr std::string_view kWhat = "  what():  ";
constexpr std::string_view kFatalPython = "Fatal Python error: ";

struct Line {
  std::string text;
  bool marked = false;  // torch prefixes the lines of an uncaught exception with "[rank3]: "
};

// One error report in the output: lines [begin, end), with the message in [message, end).
struct Report {
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

bool begins_report(const Line& line) {
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

// The end of the message that starts at `first`. A marked message ends with its marked lines. Others end at a library's
// log line or at the next report; if neither follows soon, the message is one line and the rest is other output.
std::size_t message_end(std::span<const Line> lines, std::size_t first) {
  std::size_t counted = 0;
  std::size_t end = first + 1;
  bool in_original = false;
  for (std::size_t i = first + 1; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (is_blank(line)) continue;
    if (is_library_noise(line.text) || begins_report(line) || line.marked != lines[first].marked) return end;
    in_original = in_original ? is_indented(line) : line.text == kOriginal;
    if (!in_original && !line.marked && ++counted > kMaxMessage) return first + 1;
    end = i + 1;
  }
  return end;
}

bool is_chain_line(const Line& line) {
  return line.text == "During handling of the above exception, another exception occurred:" ||
         line.text == "The above exception was the direct cause of the following exception:";
}

// In a chain of exceptions, a message ends before the line that introduces the next exception.
std::size_t stop_at_chain(std::span<const Line> lines, std::size_t first, std::size_t end) {
  std::size_t stop = first + 1;
  for (std::size_t i = first + 1; i < end && !is_chain_line(lines[i]); ++i) {
    if (!is_blank(lines[i])) stop = i + 1;
  }
  return stop;
}

Report make_report(std::span<const Line> lines, std::size_t begin, std::size_t message, std::size_t end) {
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

// Lines of other threads may come between the frames and the exception.
std::optional<Report> python_report(std::span<const Line> lines, std::size_t begin) {
  for (std::size_t i = begin + 1; i < lines.size() && !begins_report(lines[i]); ++i) {
    if (names_exception(lines[i])) return make_report(lines, begin, i, stop_at_chain(lines, i, message_end(lines, i)));
  }
  return std::nullopt;
}

// Python prints an exception group in a frame of | and +.
Report group_report(std::span<const Line> lines, std::size_t begin) {
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

Report terminate_report(std::span<const Line> lines, std::size_t begin) {
  const std::size_t message = begin + 1;
  const bool says_what = message < lines.size() && lines[message].text.starts_with(kWhat);
  if (!says_what) return make_report(lines, begin, begin, begin + 1);
  Report report = make_report(lines, begin, message, message_end(lines, message));
  report.error = report.error.substr(kWhat.size());
  return report;
}

// Only up to the thread that faulted; the line before may give the reason.
Report fault_report(std::span<const Line> lines, std::size_t begin) {
  const std::size_t message = begin > 0 && reports_error(lines[begin - 1].text) ? begin - 1 : begin;
  Report report = make_report(lines, message, message, begin + 1);
  bool is_current = false;
  for (std::size_t i = begin + 1; i < lines.size() && !begins_report(lines[i]); ++i) {
    if (is_blank(lines[i]) && is_current) break;
    is_current = is_current || lines[i].text.starts_with("Current thread ");
    if (is_indented(lines[i]) || lines[i].text.find("hread 0x") != std::string::npos) report.end = i + 1;
  }
  return report;
}

std::optional<Report> report_at(std::span<const Line> lines, std::size_t i) {
  if (lines[i].text == kTraceback) return python_report(lines, i);
  if (is_traceback(lines[i])) return group_report(lines, i);
  if (lines[i].text.starts_with(kTerminate)) return terminate_report(lines, i);
  if (lines[i].text.starts_with(kFatalPython)) return fault_report(lines, i);
  return std::nullopt;
}

// Python reports syntax errors without the line "Traceback".
std::optional<Report> syntax_report(std::span<const Line> lines, std::size_t message) {
  constexpr std::array<std::string_view, 3> kNames = {"SyntaxError: ", "IndentationError: ", "TabError: "};
  const auto is_named = [&](std::string_view name) { return lines[message].text.starts_with(name); };
  if (std::ranges::none_of(kNames, is_named)) return std::nullopt;
  std::size_t begin = message;
  while (begin > 0 && is_indented(lines[begin - 1])) --begin;
  return make_report(lines, begin, message, message + 1);
}

std::size_t ordinary_lines(std::span<const Line> lines) {
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [](const Line& line) { return !is_blank(line) && !is_library_noise(line.text); }));
}

// Whether the second report continues the first: a chained exception, or the stack dump after a C++ terminate.
bool is_continued(std::span<const Line> lines, const Report& first, const Report& second) {
  const auto between = range(lines, first.end, second.begin);
  if (lines[second.begin].text.starts_with(kFatalPython)) return ordinary_lines(between) == 0;
  return std::ranges::any_of(between, is_chain_line) && ordinary_lines(between) == 1;
}

// The last exception of a chain is the error, as in Python, unless it only reports a lost peer after an error of the
// rank itself, or is the abort that follows a C++ terminate.
Report merged(std::span<const Line> lines, const Report& first, const Report& second) {
  const bool keeps_first =
      (second.about_peer && !first.about_peer) || lines[second.begin].text.starts_with(kFatalPython);
  return {.begin = first.begin,
          .message = keeps_first ? first.message : second.message,
          .end = second.end,
          .error = keeps_first ? first.error : second.error,
          .about_peer = first.about_peer};
}

std::vector<Report> find_reports(std::span<const Line> lines) {
  std::vector<Report> reports;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto report = report_at(lines, i);
    if (!report) report = syntax_report(lines, i);
    if (!report) continue;
    i = report->end - 1;
    if (!reports.empty()) report->begin = std::max(report->begin, reports.back().end);
    if (!reports.empty() && is_continued(lines, reports.back(), *report)) {
      reports.back() = merged(lines, reports.back(), *report);
    } else {
      reports.push_back(*report);
    }
  }
  return reports;
}

// The last report, or the one shortly before it if only that one is the rank's own error: PyTorch's watchdog may abort
// a process that is about to end with an exception.
const Report& decisive(std::span<const Line> lines, const std::vector<Report>& reports) {
  constexpr std::size_t kClose = 5;
  const Report& last = reports.back();
  if (!last.about_peer || reports.size() < 2) return last;
  const Report& previous = reports[reports.size() - 2];
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

// Without a report: the last line that reports an error, with the hint that our own workers print below it.
Evidence find_error_line(std::span<const Line> lines) {
  const std::size_t oldest = lines.size() > kSearchedLines ? lines.size() - kSearchedLines : 0;
  for (std::size_t i = lines.size(); i-- > oldest;) {
    if (!reports_error(lines[i].text)) continue;
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
  const std::vector<Report> reports = find_reports(lines);
  const std::size_t lines_after = reports.empty() ? 0 : ordinary_lines(std::span(lines).subspan(reports.back().end));
  if (reports.empty() || lines_after > kMaxLinesAfter) return find_error_line(lines);
  const Report& report = decisive(lines, reports);
  return {.error = std::string(trim(report.error)),
          .traceback = traceback_of(range(lines, report.begin, report.end)),
          .about_peer = report.about_peer,
          .at_end = lines_after == 0};
}

}  // namespace tandem
