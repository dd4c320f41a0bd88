#include "launch/ranks/proc.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>

#include "base/printable.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_all(file.get()).value_or("") : "";
}

std::int64_t number_at(const std::vector<std::string>& fields, std::size_t at) {
  return at < fields.size() ? to_integer(fields[at]).value_or(0) : 0;
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  // The name may contain spaces and parentheses: it ends at the last one.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  const auto pid = to_integer(trim(text.substr(0, open)));
  if (open == text.npos || close == text.npos || close + 2 > text.size() || !pid) return std::nullopt;
  const std::vector<std::string> fields = split(text.substr(close + 2), ' ');  // from the third field of proc(5)
  if (fields.size() < 20 || fields.front().size() != 1) return std::nullopt;
  const std::int64_t ticks =
      number_at(fields, 11) + number_at(fields, 12) + number_at(fields, 13) + number_at(fields, 14);
  return ProcStat{.pid = static_cast<int>(*pid),
                  .name = std::string(text.substr(open + 1, close - open - 1)),
                  .state = fields.front().front(),
                  .parent = static_cast<int>(number_at(fields, 1)),
                  .cpu_seconds = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)),
                  .started_ticks = number_at(fields, 19)};
}

bool proc_is_ours() {
  static const bool kIsOurs = [] {
    std::error_code missing;
    return fs::read_symlink("/proc/self", missing) == str(::getpid());
  }();
  return kIsOurs;
}

fs::path proc_folder(int pid) { return str(proc_is_ours() ? "/proc/" : "/proc/of-another-namespace/", pid); }

std::optional<ProcStat> read_stat(int pid) { return parse_stat(read_text(proc_folder(pid) / "stat")); }

std::vector<ProcStat> all_processes() {
  std::vector<ProcStat> processes;
  if (!proc_is_ours()) return processes;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", unreadable)) {
    const auto pid = to_integer(entry.path().filename().native());
    if (!pid) continue;
    if (auto stat = read_stat(static_cast<int>(*pid))) processes.push_back(*std::move(stat));
  }
  return processes;
}

std::vector<ProcStat> process_tree(const std::vector<ProcStat>& all, int pid) {
  std::vector<ProcStat> tree;
  for (const ProcStat& process : all) {
    if (process.pid == pid) tree.push_back(process);
  }
  for (std::size_t parent = 0; parent < tree.size(); ++parent) {
    for (const ProcStat& process : all) {
      if (process.parent == tree[parent].pid) tree.push_back(process);
    }
  }
  return tree;
}

std::vector<int> child_processes(int pid) {
  std::vector<int> children;
  // Not from /proc/PID/task/*/children, which many kernels are built without.
  for (const ProcStat& process : all_processes()) {
    if (process.parent == pid) children.push_back(process.pid);
  }
  return children;
}

std::string command_of(int pid) {
  constexpr std::size_t kLongest = 200;
  std::string text = read_text(proc_folder(pid) / "cmdline").substr(0, kLongest);
  if (text.empty()) text = read_text(proc_folder(pid) / "comm");
  std::ranges::replace(text, '\0', ' ');
  return std::string(trim(printable_line(text)));
}

bool is_stopped(char state) { return state == 'T' || state == 't'; }

bool is_running(int pid, std::int64_t started_ticks) {
  const auto stat = pid > 0 ? read_stat(pid) : std::nullopt;
  return stat && stat->started_ticks == started_ticks && stat->state != 'Z' && stat->state != 'X';
}

std::string read_line(const fs::path& path) {
  const std::string text = read_text(path);
  return text.substr(0, text.find('\n'));
}

bool has_signal(const fs::path& status, std::string_view set, int signal) {
  for (const std::string& line : split(read_text(status), '\n')) {
    if (!line.starts_with(str(set, ':'))) continue;
    const std::string digits(trim(std::string_view(line).substr(set.size() + 1)));
    std::uint64_t bits = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    return ((bits >> (signal - 1)) & 1) != 0;
  }
  return false;
}

Fd open_pidfd(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool send_signal(const Fd& pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

}  // namespace tandem
