#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/fd.h"

namespace tandem {

// Calls back when a descriptor has something to say. All of a launcher happens in one thread, inside `wait`.
class EventLoop {
 public:
  EventLoop();

  // `ready` is called while any of `events` (EPOLLIN, EPOLLOUT) holds, and when the other end is gone.
  void watch(int fd, std::uint32_t events, std::function<void()> ready);
  void forget(int fd);
  bool watches(int fd) const { return ready_.contains(fd); }

  // Waits until something happened or `timeout_ms` passed (-1: no limit), and calls everybody concerned.
  void wait(int timeout_ms);

 private:
  Fd epoll_;
  std::unordered_map<int, std::function<void()>> ready_;
};

// Signals arrive as data instead of interrupting us, as long as this lives. One that is ignored when we start (SIGHUP
// under nohup) stays ignored.
class SignalQueue {
 public:
  explicit SignalQueue(std::span<const int> signals);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_.get(); }
  std::optional<int> take() const;

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace tandem
