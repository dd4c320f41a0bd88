#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/output/outlet.h"

namespace tandem {

enum class Stream { Out, Error };

// Cuts what a program writes into lines. A state of a progress bar ends in \r and is overwritten by what follows.
class LineCutter {
 public:
  struct Line {
    std::string_view text;  // without its end
    bool overwritten;       // ended in \r
  };

  void feed(std::string_view bytes, const std::function<void(const Line&)>& take);
  void end(const std::function<void(const Line&)>& take);  // a last line without an end

 private:
  void overwrite(const std::function<void(const Line&)>& take);

  std::string begun_;
  bool returned_ = false;  // a \r came after it: the next byte tells a line's end (\r\n) from a progress bar
};

// Holds lines back for a moment, so that the same line of several ranks becomes one. The order of each rank's lines is
// kept.
class LineFold {
 public:
  using Clock = std::chrono::steady_clock;
  using Emit = std::function<void(const std::vector<int>& ranks, const std::string& text)>;

  explicit LineFold(int num_ranks) : held_(static_cast<std::size_t>(num_ranks)) {}

  void add(int rank, std::string text, Clock::time_point now);
  void release(Clock::time_point now, const Emit& emit);  // what has waited long enough, or is complete
  void release_all(const Emit& emit);
  std::optional<Clock::time_point> due() const;  // when `release` has something to do

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
  bool prefixed = false;  // each line begins with its rank; the same line of several ranks is shown once
  std::string prefix{};   // torchrun's template for it, with ${rank}, ${local_rank}, ${role_name}; empty: ours
  std::string role{};     // for the template
  bool calm = false;      // states of a progress bar become plain lines, every 10 s at most
  bool colour = false;
  int first_rank = 0;
  int num_ranks = 1;  // of this host
};

// What is shown of the ranks, on the two streams that we were given.
class Console {
 public:
  Console(ConsoleOptions options, Outlet& out, Outlet& error);

  // Bytes pass as they are unless lines are prefixed or progress is calmed.
  void show(int local_rank, Stream stream, std::string_view bytes);
  void end(int local_rank, Stream stream);

  // A line of our own on standard error, never behind half a line of a rank.
  void say(std::string_view line);

  void flush();                                                        // lines that were held back long enough
  void finish();                                                       // all of them
  bool waiting() const { return out_.waiting() || error_.waiting(); }  // for a reader
  int poll_ms() const;  // until `flush` has something to do; -1: nothing is held back

  Outlet& outlet(Stream stream) { return stream == Stream::Out ? out_ : error_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Lines {  // of one stream
    explicit Lines(int num_ranks)
        : cutters(static_cast<std::size_t>(num_ranks)), last_progress(cutters.size()), fold(num_ranks) {}

    std::vector<LineCutter> cutters;
    std::vector<std::optional<Clock::time_point>> last_progress;
    LineFold fold;
  };

  Lines& lines(Stream stream) { return lines_[static_cast<std::size_t>(stream)]; }
  bool is_raw() const { return !options_.prefixed && !options_.calm; }
  void take_line(int local_rank, Stream stream, const LineCutter::Line& line);
  bool is_too_soon(int local_rank, Stream stream);
  LineFold::Emit emit_to(Stream stream);
  std::string prefix_of(const std::vector<int>& local_ranks) const;

  ConsoleOptions options_;
  Outlet& out_;
  Outlet& error_;
  std::array<Lines, 2> lines_;
};

}  // namespace tandem
