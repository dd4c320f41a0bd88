#pragma once

#include <csignal>
#include <optional>
#include <span>

#include "base/fd.h"

namespace tandem {

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
