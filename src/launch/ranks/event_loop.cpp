#include "launch/ranks/event_loop.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <tandem/error.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"

namespace tandem {
namespace {

bool is_ignored(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    fail(ErrorKind::Launch, str("cannot create an epoll instance: ", errno_text(errno)),
         "check the limit of open files (ulimit -n)");
  }
}

void EventLoop::watch(int fd, std::uint32_t events, std::function<void()> ready) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    fail(ErrorKind::Launch, str("cannot watch file descriptor ", fd, ": ", errno_text(errno)),
         "check the limit in /proc/sys/fs/epoll/max_user_watches");
  }
  ready_[fd] = std::move(ready);
}

void EventLoop::forget(int fd) {
  if (ready_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::wait(int timeout_ms) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto found = ready_.find(events[static_cast<std::size_t>(i)].data.fd);
    if (found == ready_.end()) continue;  // removed by an earlier callback of this round
    const std::function<void()> ready = found->second;
    ready();
  }
}

SignalQueue::SignalQueue(std::span<const int> signals, int parent) : parent_(parent) {
  sigset_t watched{};
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGCONT);
  for (const int signal : signals) {
    if (!is_ignored(signal)) ::sigaddset(&watched, signal);
  }
  sigset_t blocked = watched;
  ::sigaddset(&blocked, SIGPIPE);  // a closed reader is reported as EPIPE instead
  ::sigaddset(&blocked, SIGTTOU);  // we write to the terminal from a process group in the background
  ::sigprocmask(SIG_BLOCK, &blocked, &before_);
  fd_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (::getppid() != parent_) ::kill(::getpid(), SIGCONT);  // it died before we could notice
}

SignalQueue::~SignalQueue() {
  // A pending one would kill this process when unblocked. A signal that ends the launcher still does.
  const timespec now{};
  sigset_t harmless{};
  ::sigemptyset(&harmless);
  for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) ::sigaddset(&harmless, signal);
  while (::sigtimedwait(&harmless, nullptr, &now) > 0) continue;
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalQueue::take() const {
  signalfd_siginfo event{};
  while (::read(fd_.get(), &event, sizeof event) == sizeof event) {
    if (event.ssi_signo != SIGCONT) return static_cast<int>(event.ssi_signo);
    if (::getppid() != parent_) return SIGKILL;
  }
  return std::nullopt;
}

}  // namespace tandem
