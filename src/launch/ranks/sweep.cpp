#include "launch/ranks/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

// Reads files of /proc, one after the other, into one buffer that grows with the largest.
class ProcReader {
 public:
  ProcReader() : proc_(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), buffer_(32'768) {}

  // /proc/PID/NAME, valid until the next call; empty when it cannot be read.
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

  std::string command(int pid) {
    constexpr std::size_t kLongest = 200;
    std::string text(read(pid, "cmdline").substr(0, kLongest));
    if (text.empty()) text = read(pid, "comm");
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < ' '; }, ' ');
    return std::string(trim(text));
  }

  // In the order of their numbers. What the kernel started since the last batch of entries may be missing.
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

// Whether an environment holds the entry, alone or with more after a slash.
bool holds(std::string_view environment, std::string_view entry) {
  for (std::size_t at = environment.find(entry); at != environment.npos; at = environment.find(entry, at + 1)) {
    const bool begins = at == 0 || environment[at - 1] == '\0';
    const std::string_view rest = environment.substr(at + entry.size());
    if (begins && (rest.empty() || rest[0] == '\0' || rest[0] == '/')) return true;
  }
  return false;
}

// One run's processes, looked for again and again.
class Sweep {
 public:
  Sweep(ProcReader& reader, const std::string& run_id, std::span<const int> except)
      : reader_(reader), entry_(str("TANDEM_RUN_ID=", run_id)), except_(except), self_(::getpid()) {}

  template <class Visit>
  void for_each_member(const Visit& visit) {
    reader_.for_each_process([&](int pid) {
      if (pid != self_ && std::ranges::count(except_, pid) == 0 && is_member(pid)) visit(pid);
    });
  }

  // How many were found; each was sent the signal.
  int kill_once() {
    int found = 0;
    for_each_member([&](int pid) {
      ++found;
      // The handle comes before the second look: what the look confirms is what the handle holds, or it is dead.
      const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      if (handle && is_member(pid)) ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
    });
    return found;
  }

 private:
  // A zombie has no environment any more.
  bool is_member(int pid) { return holds(reader_.read(pid, "environ"), entry_); }

  ProcReader& reader_;
  std::string entry_;
  std::span<const int> except_;
  int self_;
};

// The fourth word of "4711 (any name) S 1 ...", counted from the last bracket, since a name may hold blanks.

}  // namespace

std::vector<Straggler> find_processes(const std::string& run_id, std::span<const int> except) {
  ProcReader reader;
  Sweep sweep(reader, run_id, except);
  std::vector<Straggler> found;
  sweep.for_each_member([&](int pid) { found.push_back({.pid = pid, .command = reader.command(pid)}); });
  return found;
}

int kill_processes(const std::string& run_id, std::span<const int> except, Deadline limit) {
  constexpr std::chrono::milliseconds kLongestPause(16);
  ProcReader reader;
  Sweep sweep(reader, run_id, except);
  std::chrono::milliseconds pause(1);
  for (int empty_sweeps = 0; empty_sweeps < 2;) {
    const int found = sweep.kill_once();
    empty_sweeps = found == 0 ? empty_sweeps + 1 : 0;
    if (found == 0) continue;
    if (limit.passed()) return found;
    std::this_thread::sleep_for(pause);  // a large process needs a moment to go
    pause = std::min(2 * pause, kLongestPause);
  }
  return 0;
}

std::vector<int> child_processes(int pid) {
  std::vector<int> children;
  // Not from /proc/PID/task/*/children, which many kernels are built without.
  for (const ProcStat& process : all_processes()) {
    if (process.parent == pid) children.push_back(process.pid);
  }
  return children;
}

std::string command_of(int pid) { return ProcReader().command(pid); }

}  // namespace tandem
