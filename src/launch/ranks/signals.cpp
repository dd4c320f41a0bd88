#include "launch/ranks/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tandem {
namespace {

bool is_ignored(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

SignalQueue::SignalQueue(std::span<const int> signals) {
  sigset_t watched{};
  ::sigemptyset(&watched);
  for (const int signal : signals) {
    if (!is_ignored(signal)) ::sigaddset(&watched, signal);
  }
  sigset_t blocked = watched;
  ::sigaddset(&blocked, SIGPIPE);  // a reader that is gone shows as EPIPE
  ::sigprocmask(SIG_BLOCK, &blocked, &before_);
  fd_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalQueue::~SignalQueue() {
  const timespec now{};
  sigset_t pipe{};
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  while (::sigtimedwait(&pipe, nullptr, &now) > 0) continue;  // one that is pending would end us below
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalQueue::take() const {
  signalfd_siginfo event{};
  if (::read(fd_.get(), &event, sizeof event) != sizeof event) return std::nullopt;
  return static_cast<int>(event.ssi_signo);
}

}  // namespace tandem
