#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "launch/ranks/event_loop.h"

namespace tandem {

// Standard output or standard error of the launcher, buffered: a slow or stopped reader must not block the supervision
// of the ranks.
class Outlet {
 public:
  // `shared`: `fd` may be redirected later (--detach), so the terminal behind it is not reopened.
  Outlet(int fd, EventLoop& loop, bool shared = false);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  void put(std::string_view text);
  void put_line(std::string_view line);  // starts on a new line

  bool crowded() const { return waiting_.size() > kCrowded; }  // writers should pause until `drained`
  bool broken() const { return error_ != 0; }                  // further output is dropped
  int error() const { return error_; }  // the errno of the failed write; EPIPE: the reader has closed
  bool waiting() const { return !waiting_.empty() && !broken(); }
  bool is_terminal() const { return terminal_; }
  bool at_line_start() const { return at_line_start_; }
  std::function<void()> drained;

 private:
  static constexpr std::size_t kCrowded = 1 << 20;

  void write_some();

  Fd own_;  // the terminal reopened in non-blocking mode
  int fd_;
  EventLoop& loop_;
  bool terminal_;
  bool may_block_;  // a pipe, terminal or socket, not a file
  int error_ = 0;
  bool at_line_start_ = true;
  std::string waiting_;
};

}  // namespace tandem
