#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/fd.h"

namespace tandem {

// Calls back when a file descriptor is ready. The launcher is single-threaded: all callbacks run inside `wait`.
class EventLoop {
 public:
  EventLoop();

  // `ready` is called while any of `events` (EPOLLIN, EPOLLOUT) holds, and when the other end is closed.
  void watch(int fd, std::uint32_t events, std::function<void()> ready);
  void forget(int fd);
  bool watches(int fd) const { return ready_.contains(fd); }

  // Waits for events, at most `timeout_ms` (-1: no limit), and calls back for each.
  void wait(int timeout_ms);

 private:
  Fd epoll_;
  std::unordered_map<int, std::function<void()>> ready_;
};

// Receives signals through a file descriptor (signalfd) while this object lives. A signal that is ignored at the start
// (SIGHUP under nohup) stays ignored. The death of the process `parent` is received as SIGKILL (see run_guarded).
class SignalQueue {
 public:
  SignalQueue(std::span<const int> signals, int parent);
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int fd() const { return fd_.get(); }
  std::optional<int> take() const;

 private:
  int parent_;
  sigset_t before_{};
  Fd fd_;
};

}  // namespace tandem
