#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/output/line_marker.h"
#include "launch/output/outlet.h"

namespace tandem {

enum class Stream { Out, Error };

// Splits output into lines. An update of a progress bar ends in \r and is overwritten by what follows.
class LineCutter {
 public:
  struct Line {
    std::string_view text;  // without the newline
    bool overwritten;       // ended in \r
  };

  void feed(std::string_view bytes, const std::function<void(const Line&)>& take);
  void end(const std::function<void(const Line&)>& take);  // the last line, if it has no newline

 private:
  void overwrite(const std::function<void(const Line&)>& take);

  std::string begun_;
  bool returned_ = false;  // \r was read: the next byte tells a line ending (\r\n) from a progress bar
};

// Delays lines briefly, to merge the same line from several ranks into one. Keeps the order of each rank's lines.
class LineFold {
 public:
  using Clock = std::chrono::steady_clock;
  using Emit = std::function<void(const std::vector<int>& ranks, const std::string& text)>;

  explicit LineFold(int num_ranks) : held_(static_cast<std::size_t>(num_ranks)) {}

  void add(int rank, std::string text, Clock::time_point now);
  void release(Clock::time_point now, const Emit& emit);  // lines that are due, or that all ranks have written
  void release_all(const Emit& emit);
  std::optional<Clock::time_point> due() const;  // when to call `release` next

 private:
  struct Held {
    std::string text;
    Clock::time_point since;
  };

  std::optional<std::size_t> oldest() const;
  bool is_due(std::size_t oldest, std::size_t num_same, Clock::time_point now) const;
  std::vector<int> same_as(const std::string& text) const;
  void emit_one(std::size_t oldest, const std::vector<int>& ranks, const Emit& emit);

  std::vector<std::deque<Held>> held_;
  std::size_t bytes_ = 0;
};

struct ConsoleOptions {
  bool prefixed = false;  // prefix each line with its rank; show the same line of several ranks once
  std::string prefix{};   // torchrun's template: ${rank}, ${local_rank}, ${role_name}; empty: ours
  std::string role{};     // for the template
  bool calm = false;      // print progress bars as plain lines, at most one every 10 s
  bool colour = false;
  int first_rank = 0;
  int num_ranks = 1;  // on this host
};

// Shows the output of the ranks on our standard output and standard error.
class Console {
 public:
  Console(ConsoleOptions options, Outlet& out, Outlet& error);

  // Unless `prefixed` or `calm` is set, standard output that is not a terminal is passed through unchanged, and
  // otherwise only lines that begin as ours do are marked.
  void show(int local_rank, Stream stream, std::string_view bytes);
  void end(int local_rank, Stream stream);

  // Prints a line of the launcher on standard error, starting on a new line.
  void say(std::string_view line);

  void flush();                                                        // delayed lines that are due
  void finish();                                                       // all delayed lines
  bool waiting() const { return out_.waiting() || error_.waiting(); }  // for a slow reader
  int poll_ms() const;                                                 // until `flush` is due; -1: no line is delayed

  Outlet& outlet(Stream stream) { return stream == Stream::Out ? out_ : error_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Lines {  // of one stream
    explicit Lines(int num_ranks)
        : cutters(static_cast<std::size_t>(num_ranks)),
          markers(cutters.size()),
          last_progress(cutters.size()),
          fold(num_ranks) {}

    std::vector<LineCutter> cutters;
    std::vector<LineMarker> markers;
    std::vector<std::optional<Clock::time_point>> last_progress;
    LineFold fold;
  };

  Lines& lines(Stream stream) { return lines_[static_cast<std::size_t>(stream)]; }
  bool is_raw() const { return !options_.prefixed && !options_.calm; }
  bool is_exact(Stream stream) const { return stream == Stream::Out && !out_.is_terminal(); }
  void take_line(int local_rank, Stream stream, const LineCutter::Line& line);
  void show_held(Clock::time_point before);
  bool is_too_soon(int local_rank, Stream stream);
  LineFold::Emit emit_to(Stream stream);
  std::string prefix_of(const std::vector<int>& local_ranks) const;

  ConsoleOptions options_;
  Outlet& out_;
  Outlet& error_;
  std::array<Lines, 2> lines_;
};

}  // namespace tandem
