#include "monitor/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "monitor/numbers.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kBarEvery{100};
constexpr std::chrono::seconds kLineEvery{10};
constexpr std::string_view kSeparator = " | ";

// Columns of a step_line that a narrow terminal does without, the least needed first. The bar goes before a line has to
// do without any other: loss, learning rate, time and speed are what a run is steered by.
constexpr std::array<std::string_view, 6> kDroppedFirst = {" rank", "mem ", "mfu ", "norm ", "skipped", "epoch "};

constexpr const char* kEraseRest = "\033[J";

// Queried each time, since the window may be resized.
std::size_t num_columns(int fd) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsual;
}

std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> columns;
  for (std::size_t end = line.find(kSeparator); end != line.npos; end = line.find(kSeparator)) {
    columns.emplace_back(line.substr(0, end));
    line.remove_prefix(end + kSeparator.size());
  }
  columns.emplace_back(line);
  return columns;
}

// The terms of a loss stand between it and the learning rate; the last ones go first.
void drop_terms(std::vector<std::string>& columns, std::size_t width) {
  const auto find = [&](const char* name) {
    return std::ranges::find_if(columns, [&](const std::string& column) { return column.starts_with(name); });
  };
  while (join(columns, kSeparator).size() > width) {
    const auto rate = find("lr ");
    if (rate == columns.end() || rate - find("loss ") < 2) return;
    columns.erase(rate - 1);
  }
}

// Drops columns of kDroppedFirst and then terms of the loss until the line fits, or all of them.
std::vector<std::string> needed_columns(std::string_view line, std::size_t width) {
  std::vector<std::string> columns = columns_of(line);
  for (const std::string_view name : kDroppedFirst) {
    if (join(columns, kSeparator).size() <= width) break;
    std::erase_if(columns, [&](const std::string& column) { return column.find(name) != column.npos; });
  }
  drop_terms(columns, width);
  return columns;
}

// Drops more from the right until the line fits, the first column and the one on the right last. No number is cut.
std::string fitted(std::string_view line, std::size_t width) {
  std::vector<std::string> columns = needed_columns(line, width);
  const auto fits = [&] { return join(columns, kSeparator).size() <= width; };
  while (!fits() && columns.size() > 1) columns.erase(columns.end() - (columns.size() > 2 ? 2 : 1));
  return fits() ? join(columns, kSeparator) : "";
}

// The line in three parts: before the filled cells, these, and the rest.
struct Bar {
  std::string begin, full, rest;

  std::size_t width() const { return begin.size() + full.size() + rest.size(); }
};

Bar make_bar(const std::string& line, double fraction, std::size_t width) {
  constexpr std::size_t kCells = 10;
  const std::string share = pad_left(str(static_cast<int>(fraction * 100), "% "), 5);  // 100% only at the end
  const std::size_t bar_width = kCells + 2 + share.size();
  const bool has_room = join(needed_columns(line, 0), kSeparator).size() + bar_width <= width;
  if (!has_room) return {fitted(line, width), "", ""};
  const auto num_full = static_cast<std::size_t>(fraction * kCells);
  const std::string empty(kCells - num_full, '.');
  return {"[", std::string(num_full, '#'), str(empty, ']', share, fitted(line, width - bar_width))};
}

}  // namespace

ProgressStyle choose_style(int fd, const ProgressOptions& options) {
  if (!options.progress) return ProgressStyle::None;
  const bool can_redraw = ::isatty(fd) == 1 && environment_variable("TERM") != "dumb";
  return can_redraw && !is_notebook(environment_variable) ? ProgressStyle::Bar : ProgressStyle::Lines;
}

bool has_colour(int fd) {
  return ::isatty(fd) == 1 && !environment_variable("NO_COLOR") && environment_variable("TERM") != "dumb";
}

Progress::Progress(int fd, ProgressStyle style, bool is_coloured, Now now)
    : fd_(fd), style_(style), is_coloured_(is_coloured), now_(std::move(now)) {}

Progress::~Progress() { finish(); }

void Progress::update(std::string line, double fraction) {
  line_ = std::move(line);
  fraction_ = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  is_shown_ = false;
  if (is_due()) draw();
}

bool Progress::is_due() const {
  if (!has_begun_) return true;
  const auto pause = now_() - last_shown_;
  return style_ == ProgressStyle::Bar ? pause >= kBarEvery : pause >= kLineEvery;
}

void Progress::draw() {
  if (style_ == ProgressStyle::None) return;
  is_shown_ = true;
  has_begun_ = true;
  last_shown_ = now_();
  const std::string back = to_bar();  // before draw_bar changes the state
  // The rest of the old bar is erased after the new one is drawn, to avoid flicker.
  write(style_ == ProgressStyle::Bar ? str(back, draw_bar(), kEraseRest) : str(line_, '\n'));
}

void Progress::log(std::string_view line) {
  const std::string back = to_bar();
  write(bar_width_ > 0 ? str(back, kEraseRest, line, '\n', draw_bar()) : str(line, '\n'));
}

void Progress::finish() {
  if (style_ == ProgressStyle::None || (is_shown_ && bar_width_ == 0)) return;
  is_shown_ = true;
  write(bar_width_ > 0 ? str(to_bar(), line_, kEraseRest, '\n') : str(line_, '\n'));
  bar_width_ = 0;
}

// Moves to the start of the bar. If the window became narrower, the terminal has wrapped it into several rows.
std::string Progress::to_bar() const {
  const std::size_t rows_up = bar_width_ > 0 ? (bar_width_ - 1) / num_columns(fd_) : 0;
  return rows_up > 0 ? str("\033[", rows_up, "A\r") : "\r";
}

std::string Progress::draw_bar() {
  // One column stays free, since terminals wrap when the last one is used.
  const Bar bar = make_bar(line_, fraction_, num_columns(fd_) - 1);
  bar_width_ = bar.width();
  const bool is_green = is_coloured_ && !bar.full.empty();
  return str(bar.begin, is_green ? "\033[32m" : "", bar.full, is_green ? "\033[0m" : "", bar.rest);
}

void Progress::write(std::string_view text) {
  // A closed reader or a full disk does not end a run; the event log has everything.
  if (fd_ < 0 || write_all(fd_, text)) return;
  fd_ = -1;
  if (errno != EPIPE && errno != EBADF) error_ = errno;
}

}  // namespace tandem
