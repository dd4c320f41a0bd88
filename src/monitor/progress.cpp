#include "monitor/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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
constexpr const char* kEraseRest = "\033[J";

// Queried each time, since the window may be resized.
std::size_t num_columns(int fd) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsual;
}

// Drops columns from the right, but never the last one, until the line fits: loss matters more than speed, speed more
// than ranks. No number is truncated.
std::string without_columns(std::string line, std::size_t width) {
  while (line.size() > width) {
    const std::size_t last = line.rfind(kSeparator);
    if (last == line.npos || last == 0) return "";
    const std::size_t before = line.rfind(kSeparator, last - 1);
    if (before == line.npos) {
      line.erase(last);
    } else {
      line.erase(before, last - before);
    }
  }
  return line;
}

// The line in three parts: before the filled cells, these, and the rest.
struct Bar {
  std::string begin, full, rest;

  std::size_t width() const { return begin.size() + full.size() + rest.size(); }
};

Bar make_bar(const std::string& line, double fraction, std::size_t width) {
  constexpr std::size_t kCells = 10;
  constexpr std::size_t kLeastRoomForLine = 60;
  const std::string share = pad_left(str(static_cast<int>(fraction * 100), "% "), 5);  // 100% only at the end
  const std::size_t bar_width = kCells + 2 + share.size();
  if (width < bar_width + kLeastRoomForLine) return {without_columns(line, width), "", ""};
  const auto num_full = static_cast<std::size_t>(fraction * kCells);
  const std::string empty(kCells - num_full, '.');
  return {"[", std::string(num_full, '#'), str(empty, ']', share, without_columns(line, width - bar_width))};
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
