#include "launch/ranks/leftovers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>

#include "base/clock.h"
#include "base/text.h"
#include "launch/ranks/sweep.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kFarewell{500};
constexpr std::chrono::seconds kLimit{10};

// A child that has ended and is not collected yet; 0: none has, -1: there is no child. The guard is none (guard.cpp).
pid_t ended_child() {
  siginfo_t ended{};
  return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 ? ended.si_pid : -1;
}

bool any_left() {
  reap_orphans([](int) { return false; });
  return ended_child() >= 0;
}

void wait_while_left(EventLoop& loop, std::chrono::milliseconds limit) {
  constexpr int kLookEveryMs = 20;
  const Deadline deadline(limit);
  while (any_left() && !deadline.passed()) loop.wait(kLookEveryMs);
}

std::string names_text(const std::vector<int>& pids) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> names;
  for (const int pid : pids) names.push_back(str(command_of(pid), " (process ", pid, ')'));
  if (names.size() > kShown) {
    names.resize(kShown);
    names.emplace_back("...");
  }
  return str("the ranks left ", pids.size(), pids.size() == 1 ? " process" : " processes",
             " behind, which tandem stops: ", join(names, ", "));
}

}  // namespace

void reap_orphans(const std::function<bool(int pid)>& is_ours) {
  for (pid_t pid = ended_child(); pid > 0 && !is_ours(pid); pid = ended_child()) ::waitpid(pid, nullptr, 0);
}

void stop_leftovers(const std::string& run_id, int guard_pid, EventLoop& loop,
                    const std::function<void(const std::string& line)>& say) {
  const auto left = [guard_pid] {
    std::vector<int> pids = child_processes(::getpid());
    std::erase(pids, guard_pid);
    return pids;
  };
  if (!any_left()) return;
  wait_while_left(loop, kFarewell);
  if (!any_left()) return;
  say(names_text(left()));
  for (const int pid : left()) ::kill(pid, SIGTERM);
  wait_while_left(loop, kFarewell);
  // The children of what is killed become ours, so it is done again until none is left.
  const std::array<int, 1> except = {guard_pid};
  const Deadline limit(kLimit);
  while (any_left() && !limit.passed()) {
    kill_processes(run_id, except, Deadline(kFarewell));
    for (const int pid : left()) ::kill(pid, SIGKILL);
  }
}

}  // namespace tandem
