#include "launch/output/outlet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/text.h"

namespace tandem {
namespace {

bool may_block(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(fd) == 1;
}

Fd open_again(int fd) {
  return Fd(::open(str("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool is_ready(int fd) {
  pollfd event{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&event, 1, 0) > 0;
}

}  // namespace

Outlet::Outlet(int fd, EventLoop& loop, bool shared)
    : own_(::isatty(fd) == 1 && !shared ? open_again(fd) : Fd()),
      fd_(own_ ? own_.get() : fd),
      loop_(loop),
      terminal_(::isatty(fd) == 1),
      may_block_(may_block(fd)) {}

Outlet::~Outlet() { loop_.forget(fd_); }

void Outlet::put(std::string_view text) {
  if (text.empty() || broken()) return;
  at_line_start_ = text.back() == '\n';
  if (waiting_.empty() && !may_block_) {
    if (!write_all(fd_, text)) error_ = errno;
    return;
  }
  waiting_ += text;
  write_some();
  if (!waiting_.empty() && !loop_.watches(fd_)) loop_.watch(fd_, EPOLLOUT, [this] { write_some(); });
}

void Outlet::put_line(std::string_view line) {
  if (!at_line_start_) put("\n");
  put(line);
}

// The file description is shared with our parent, so it must not be set to non-blocking. A pipe that polls as writable
// accepts PIPE_BUF bytes without blocking.
void Outlet::write_some() {
  std::size_t done = 0;
  while (done < waiting_.size() && is_ready(fd_)) {
    const ssize_t count = ::write(fd_, waiting_.data() + done, std::min<std::size_t>(PIPE_BUF, waiting_.size() - done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      error_ = errno;
      done = waiting_.size();
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  const bool was_crowded = crowded();
  waiting_.erase(0, done);
  if (waiting_.empty()) loop_.forget(fd_);
  if ((broken() || (was_crowded && !crowded())) && drained) drained();
}

}  // namespace tandem
