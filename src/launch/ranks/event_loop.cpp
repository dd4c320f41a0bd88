#include "launch/ranks/event_loop.h"

#include <sys/epoll.h>
#include <tandem/error.h>

#include <array>
#include <cerrno>

#include "base/text.h"

namespace tandem {

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) {
    fail(ErrorKind::Launch, str("no event queue: ", errno_text(errno)), "check the limit of open files (ulimit -n)");
  }
}

void EventLoop::watch(int fd, std::uint32_t events, std::function<void()> ready) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    fail(ErrorKind::Launch, str("cannot watch descriptor ", fd, ": ", errno_text(errno)),
         "check the limit of watches (/proc/sys/fs/epoll/max_user_watches)");
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
    if (found == ready_.end()) continue;  // an earlier call of this round forgot it
    const std::function<void()> ready = found->second;
    ready();
  }
}

}  // namespace tandem
