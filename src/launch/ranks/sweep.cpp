#include "launch/ranks/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

// Reads files in /proc into one growing buffer, since a sweep reads thousands of them.
class ProcReader {
 public:
  ProcReader() : proc_(proc_is_ours() ? ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1), buffer_(32'768) {}

  // /proc/PID/NAME, valid until the next call; empty if it cannot be read.
  std::string_view read(int pid, std::string_view name) {
    std::array<char, 64> path{};
    char* end = std::to_chars(path.data(), path.data() + 16, pid).ptr;
    *end = '/';
    std::memcpy(end + 1, name.data(), name.size());
    const Fd file(::openat(proc_.get(), path.data(), O_RDONLY | O_CLOEXEC));
    std::size_t size = 0;
    while (file) {
      if (size == buffer_.size()) buffer_.resize(2 * size);
      const ssize_t count = ::read(file.get(), buffer_.data() + size, buffer_.size() - size);
      if (count <= 0) break;
      size += static_cast<std::size_t>(count);
    }
    return {buffer_.data(), size};
  }

  // In the order of pids. Processes started during the call may be missing.
  template <class Visit>
  void for_each_process(const Visit& visit) const {
    ::lseek(proc_.get(), 0, SEEK_SET);
    alignas(dirent64) std::array<char, 32'768> entries{};
    while (true) {
      const long size = ::syscall(SYS_getdents64, proc_.get(), entries.data(), entries.size());
      if (size <= 0) return;
      for (const char* at = entries.data(); at < entries.data() + size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(at);
        at += entry->d_reclen;
        int pid = 0;
        if (std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), pid).ptr != entry->d_name) {
          visit(pid);
        }
      }
    }
  }

 private:
  Fd proc_;
  std::vector<char> buffer_;
};

// Whether an environment has the entry, exactly or followed by a slash.
bool holds(std::string_view environment, std::string_view entry) {
  for (std::size_t at = environment.find(entry); at != environment.npos; at = environment.find(entry, at + 1)) {
    const bool begins = at == 0 || environment[at - 1] == '\0';
    const std::string_view rest = environment.substr(at + entry.size());
    if (begins && (rest.empty() || rest[0] == '\0' || rest[0] == '/')) return true;
  }
  return false;
}

// Finds the processes of a run.
class Sweep {
 public:
  Sweep(ProcReader& reader, const std::string& run_id)
      : reader_(reader), entry_(str("TANDEM_RUN_ID=", run_id)), self_(::getpid()) {}

  template <class Visit>
  void for_each_member(const Visit& visit) {
    reader_.for_each_process([&](int pid) {
      if (pid != self_ && is_member(pid)) visit(pid);
    });
  }

  // Sends SIGKILL to each process found, and returns their number.
  int kill_once() {
    int found = 0;
    for_each_member([&](int pid) {
      ++found;
      // Check again after the pidfd is open: the pid may have been reused before that.
      const Fd handle = open_pidfd(pid);
      if (handle && is_member(pid)) send_signal(handle, SIGKILL);
    });
    return found;
  }

 private:
  // The environment of a zombie is empty.
  bool is_member(int pid) { return holds(reader_.read(pid, "environ"), entry_); }

  ProcReader& reader_;
  std::string entry_;
  int self_;
};

constexpr std::chrono::milliseconds kLeftoverGrace{500};
constexpr std::chrono::milliseconds kLeftoverLimit{10'000};

// The pid of a zombie child; 0: no child has ended; -1: there is no child. The guard does not count (see guard.cpp).
pid_t ended_child() {
  siginfo_t ended{};
  return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 ? ended.si_pid : -1;
}

bool any_left() {
  reap_orphans([](int) { return false; });
  return ended_child() >= 0;
}

// Whether any is left after a while.
bool still_left(EventLoop& loop, const std::function<bool()>& in_a_hurry) {
  constexpr int kLookEveryMs = 20;
  const Deadline deadline(kLeftoverGrace);
  while (any_left()) {
    if (in_a_hurry() || deadline.passed()) return true;
    loop.wait(kLookEveryMs);
  }
  return false;
}

bool has_child_in(int group) {
  siginfo_t ignored{};
  return ::waitid(P_PGID, static_cast<id_t>(group), &ignored, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void signal_leftovers(const Leftovers& leftovers, int signal) {
  for (const int pid : child_processes(::getpid())) ::kill(pid, signal);
  for (const int group : leftovers.groups) {
    if (has_child_in(group)) ::kill(-group, signal);  // otherwise the number may be another group's by now
  }
}

std::string names_text(const std::vector<int>& pids) {
  constexpr std::size_t kShown = 5;
  if (pids.empty()) return "the ranks left processes behind; stopping those in their process groups";
  std::vector<std::string> names;
  for (const int pid : pids) names.push_back(str(command_of(pid), " (process ", pid, ')'));
  if (names.size() > kShown) {
    names.resize(kShown);
    names.emplace_back("...");
  }
  return str("the ranks left ", pids.size(), pids.size() == 1 ? " process" : " processes",
             " behind; stopping: ", join(names, ", "));
}

}  // namespace

std::vector<RunProcess> find_processes(const std::string& run_id) {
  ProcReader reader;
  Sweep sweep(reader, run_id);
  std::vector<RunProcess> found;
  sweep.for_each_member([&](int pid) { found.push_back({.pid = pid, .command = command_of(pid)}); });
  return found;
}

int kill_processes(const std::string& run_id, Deadline limit) {
  constexpr std::chrono::milliseconds kLongestPause(16);
  ProcReader reader;
  Sweep sweep(reader, run_id);
  std::chrono::milliseconds pause(1);
  for (int empty_sweeps = 0; empty_sweeps < 2;) {
    const int found = sweep.kill_once();
    empty_sweeps = found == 0 ? empty_sweeps + 1 : 0;
    if (found == 0) continue;
    if (limit.passed()) return found;
    std::this_thread::sleep_for(pause);  // a large process takes a moment to end
    pause = std::min(2 * pause, kLongestPause);
  }
  return 0;
}

void reap_orphans(const std::function<bool(int pid)>& is_ours) {
  for (pid_t pid = ended_child(); pid > 0 && !is_ours(pid); pid = ended_child()) ::waitpid(pid, nullptr, 0);
}

void kill_descendants(std::span<const int> except, Deadline limit) {
  constexpr std::chrono::milliseconds kPause(1);
  // Two looks: the list of children may miss one that becomes ours while it is read.
  for (int empty_looks = 0; empty_looks < 2 && any_left() && !limit.passed();) {
    std::vector<int> pids = child_processes(::getpid());
    std::erase_if(pids, [&](int pid) { return std::ranges::count(except, pid) > 0; });
    empty_looks = pids.empty() ? empty_looks + 1 : 0;
    for (const int pid : pids) ::kill(pid, SIGKILL);
    if (!pids.empty()) std::this_thread::sleep_for(kPause);
  }
}

void stop_leftovers(const Leftovers& leftovers, EventLoop& loop, const std::function<bool()>& in_a_hurry,
                    const std::function<void(const std::string& line)>& say) {
  if (!still_left(loop, in_a_hurry)) return;
  say(names_text(child_processes(::getpid())));
  signal_leftovers(leftovers, SIGTERM);
  if (!still_left(loop, in_a_hurry)) return;
  // Children of killed processes become ours, so repeat until none is left.
  const Deadline limit(proc_is_ours() ? kLeftoverLimit : kLeftoverGrace);
  while (any_left() && !limit.passed()) {
    kill_processes(leftovers.run_id, Deadline(kLeftoverGrace));
    signal_leftovers(leftovers, SIGKILL);
    loop.wait(1);
  }
}

}  // namespace tandem
