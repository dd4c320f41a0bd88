#pragma once

#include <tandem/run_options.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tandem {

enum class ProgressStyle {
  Bar,    // one line, redrawn in place at the bottom of a terminal
  Lines,  // plain lines, at most every 10 s
  None,
};

// A bar on a terminal; lines in a pipe, a file or a notebook, whose terminal cannot redraw a line.
ProgressStyle choose_style(int fd, const ProgressOptions& options);

// Whether to use colour: on a terminal, unless NO_COLOR is set.
bool has_colour(int fd);

// Shows the progress of a run on a file that must outlive it. Used by one rank.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  Progress(int fd, ProgressStyle style, bool is_coloured, Now now = Clock::now);
  ~Progress();  // calls finish
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The newest line (see step_line) and the fraction of the run that is done. The first line is always shown, later
  // ones at most every 0.1 s (bar) or 10 s (lines). On a narrow terminal some columns and the bar make room: norm and
  // ranks before learning rate and speed, the first and the last column never.
  void update(std::string line, double fraction);

  // Prints a line above the bar.
  void log(std::string_view line);

  // Replaces the bar by the newest line.
  void finish();

  // The errno of a write that failed; later output is dropped. 0: none, or the reader has closed, as `| head` does.
  int error() const { return error_; }

 private:
  bool is_due() const;
  void draw();
  std::string to_bar() const;
  std::string draw_bar();
  void write(std::string_view text);

  int fd_;
  int error_ = 0;
  ProgressStyle style_;
  bool is_coloured_;
  Now now_;
  std::string line_;
  double fraction_ = 0;
  std::size_t bar_width_ = 0;  // on the screen; 0: none
  bool is_shown_ = true;       // the newest line has been shown
  bool has_begun_ = false;
  Clock::time_point last_shown_;
};

}  // namespace tandem
