#include "train/stop_request.h"

#include <atomic>
#include <csignal>
#include <optional>

#include "base/control_page.h"
#include "base/worker_env.h"

namespace tandem {
namespace {

std::atomic<bool> was_asked = false;
std::optional<ControlPage> page;  // of the launcher, which says there whether a peer has failed

static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  was_asked = true;
  if (!page || !page->aborted_by()) return;
  std::signal(SIGTERM, SIG_DFL);
  std::raise(SIGTERM);
}

}  // namespace

StopRequest::StopRequest() {
  was_asked = false;
  if (const int fd = read_worker_env().control_fd; fd >= 0) page = ControlPage::open(fd);
  before_ = std::signal(SIGTERM, on_signal);
}

StopRequest::~StopRequest() { std::signal(SIGTERM, before_); }

bool StopRequest::is_there() { return was_asked; }

}  // namespace tandem
