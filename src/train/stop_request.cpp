#include "train/stop_request.h"

#include <atomic>
#include <csignal>
#include <optional>

#include "base/control_page.h"
#include "base/worker_env.h"

namespace tandem {
namespace {

std::atomic<int> last_signal = 0;
std::optional<ControlPage> page;  // of the launcher: whether another rank has failed

static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  const bool is_second_interrupt = last_signal.exchange(signal) == SIGINT && signal == SIGINT;
  const bool has_peer_failed = page && page->aborted_by();
  if (!is_second_interrupt && !has_peer_failed) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

StopRequest::StopRequest() {
  last_signal = 0;
  if (const int fd = read_worker_env().control_fd; fd >= 0) page = ControlPage::open(fd);
  term_before_ = std::signal(SIGTERM, on_signal);
  int_before_ = std::signal(SIGINT, on_signal);
  hangup_before_ = std::signal(SIGHUP, on_signal);
  if (hangup_before_ == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // as under nohup
}

StopRequest::~StopRequest() {
  std::signal(SIGTERM, term_before_);
  std::signal(SIGINT, int_before_);
  std::signal(SIGHUP, hangup_before_);
}

std::string StopRequest::signal_name() {
  if (last_signal == 0) return {};
  if (last_signal == SIGHUP) return "SIGHUP";
  return last_signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace tandem
