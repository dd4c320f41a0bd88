#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "launch/ranks/event_loop.h"

namespace tandem {

// One of our own output streams. What it does not take at once waits here: a reader that is slow or asleep must not
// keep us from watching the ranks.
class Outlet {
 public:
  // `shared`: whoever shares the terminal behind `fd` with us may replace it, so it is not opened again.
  Outlet(int fd, EventLoop& loop, bool shared = false);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  void put(std::string_view text);
  void put_line(std::string_view line);  // begins on a line of its own

  bool crowded() const { return waiting_.size() > kCrowded; }  // whoever can should write no more until `drained`
  bool broken() const { return error_ != 0; }                  // what is put is dropped
  int error() const { return error_; }                         // the errno that broke it; EPIPE: its reader is gone
  bool waiting() const { return !waiting_.empty() && !broken(); }
  bool is_terminal() const { return terminal_; }
  bool at_line_start() const { return at_line_start_; }
  std::function<void()> drained;

 private:
  static constexpr std::size_t kCrowded = 1 << 20;

  void write_some();

  Fd own_;  // a terminal opened again, so that writing to it never blocks
  int fd_;
  EventLoop& loop_;
  bool terminal_;
  bool may_block_;  // a pipe, a terminal, a socket: not a file
  int error_ = 0;
  bool at_line_start_ = true;
  std::string waiting_;
};

}  // namespace tandem
