#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tandem {

struct ProgressOptions {
  bool progress = true;
};

template <class Visitor>
void visit_fields(ProgressOptions& o, Visitor&& field) {
  field("progress", o.progress, "show a line of the last step");
}

enum class ProgressStyle {
  Bar,    // one line that stays in place, at the bottom of a terminal
  Lines,  // plain lines, every 10 s at most
  None,
};

// How progress looks best on that file: a bar on a terminal, lines in a pipe, a file or a notebook, which has a
// terminal but cannot redraw a line.
ProgressStyle choose_style(int fd, const ProgressOptions& options);

// Whether colour is welcome there: on a terminal, without NO_COLOR.
bool has_colour(int fd);

// Shows how a run proceeds on a file that outlives it, and lets other lines pass. Only one rank has one.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  Progress(int fd, ProgressStyle style, bool is_coloured, Now now = Clock::now);
  ~Progress();  // as finish
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The newest line (see step_line), and the share of the run that is done. The first one is shown in any case, then
  // those that come 0.1 s (a bar) or 10 s (lines) after the last that was shown. A bar leaves out columns that the
  // terminal has no room for, never the first and the last.
  void update(std::string line, double fraction);

  // A line of its own, above the bar.
  void log(std::string_view line);

  // The newest line for good, in place of the bar.
  void finish();

 private:
  bool is_due() const;
  void draw();
  std::string to_bar() const;
  std::string draw_bar();
  void write(std::string_view text);

  int fd_;
  ProgressStyle style_;
  bool is_coloured_;
  Now now_;
  std::string line_;
  double fraction_ = 0;
  std::size_t bar_width_ = 0;  // on the screen; 0: there is none
  bool is_shown_ = true;       // nothing is newer than what was shown
  bool has_begun_ = false;
  Clock::time_point last_shown_;
};

}  // namespace tandem
