#include <tandem/progress.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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
constexpr const char* kEraseLine = "\r\033[K";

// Asked for each time, since windows change their size. One column stays free: a terminal wraps when the last is used.
std::size_t room(int fd) {
  constexpr std::size_t kUsualWidth = 80;
  winsize size{};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (is_known ? size.ws_col : kUsualWidth) - 1;
}

// The columns before the last one go first: speed is worth more than ranks, and loss more than speed.
std::string without_columns(std::string line, std::size_t width) {
  while (line.size() > width) {
    const std::size_t last = line.rfind(kSeparator);
    if (last == line.npos || last == 0) break;
    const std::size_t before = line.rfind(kSeparator, last - 1);
    if (before == line.npos) break;
    line.erase(before, last - before);
  }
  return line.substr(0, width);
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
  is_drawn_ = style_ == ProgressStyle::Bar;
  is_shown_ = true;
  has_begun_ = true;
  last_shown_ = now_();
  // The rest of the line is erased after it is overwritten, not before: no frame shows it empty.
  write(is_drawn_ ? str('\r', bar_text(), "\033[K") : str(line_, '\n'));
}

// A bar of ten cells, the percentage, and the line.
std::string Progress::bar_text() const {
  constexpr std::size_t kCells = 10;
  constexpr std::size_t kLeastRoomForLine = 40;
  const std::size_t width = room(fd_);
  const auto full = static_cast<std::size_t>(fraction_ * kCells);
  // Never 100% before the end.
  const std::string share = pad_left(str(static_cast<int>(fraction_ * 100), "% "), 5);
  const std::size_t bar_width = kCells + 2 + share.size();
  if (width < bar_width + kLeastRoomForLine) return without_columns(line_, width);
  const std::string cells = str(is_coloured_ ? "\033[32m" : "", std::string(full, '#'), is_coloured_ ? "\033[0m" : "",
                                std::string(kCells - full, '.'));
  return str('[', cells, ']', share, without_columns(line_, width - bar_width));
}

void Progress::log(std::string_view line) {
  write(is_drawn_ ? str(kEraseLine, line, '\n', bar_text()) : str(line, '\n'));
}

void Progress::finish() {
  if (style_ == ProgressStyle::None || (is_shown_ && !is_drawn_)) return;
  const bool was_drawn = std::exchange(is_drawn_, false);
  is_shown_ = true;
  write(str(was_drawn ? kEraseLine : "", line_, '\n'));
}

void Progress::write(std::string_view text) {
  // A reader that has gone is no reason to end a run; the event log has everything.
  if (fd_ >= 0 && !write_all(fd_, text)) fd_ = -1;
}

}  // namespace tandem
