#include "launch/cause/stacks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/printable.h"
#include "base/text.h"
#include "launch/cause/inspect.h"
#include "launch/cause/python.h"
#include "launch/ranks/proc.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// The number of threads that block the signal. A thread blocks a signal while it runs its handler.
int threads_blocking(int pid) {
  int count = 0;
  std::error_code gone;
  for (const fs::directory_entry& thread : fs::directory_iterator(proc_folder(pid) / "task", gone)) {
    if (has_signal(thread.path() / "status", "SigBlk", kStackSignal)) ++count;
  }
  return count;
}

bool has_open(int pid, const fs::path& path) {
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0) return false;
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(proc_folder(pid) / "fd", gone)) {
    struct stat found {};
    const bool known = ::stat(entry.path().c_str(), &found) == 0;
    if (known && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino) return true;
  }
  return false;
}

// A request for the stacks of one process, and its answer.
class StackRequest {
 public:
  // The signal would kill a process without a handler, and a process that has closed its file would write to whatever
  // file has that descriptor now.
  StackRequest(ProcStat process, const fs::path& stacks) : process_(std::move(process)) {
    const fs::path path = stacks / str(process_.pid, ".txt");
    const Fd pidfd = open_pidfd(process_.pid);
    asked_ = pidfd && has_signal(proc_folder(process_.pid) / "status", "SigCgt", kStackSignal) &&
             has_open(process_.pid, path);
    if (!asked_ || is_stopped(process_.state)) return;
    file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ::lseek(file_.get(), 0, SEEK_END);
    blocking_before_ = threads_blocking(process_.pid);
    if (!send_signal(pidfd, kStackSignal)) file_ = Fd();
  }

  const ProcStat& process() const { return process_; }
  bool asked() const { return asked_; }
  bool waiting() const { return static_cast<bool>(file_); }
  const std::string& answer() const { return answer_; }

  // Reads the answer once it is complete.
  void look(bool last_time) {
    if (!waiting()) return;
    answer_ += read_all(file_.get()).value_or("");
    const bool begun = !answer_.empty();
    const bool ended = begun && threads_blocking(process_.pid) <= blocking_before_;
    if (!ended && !last_time) return;
    answer_ += read_all(file_.get()).value_or("");
    file_ = Fd();
  }

 private:
  ProcStat process_;
  bool asked_ = false;
  Fd file_;  // open while waiting for the answer
  int blocking_before_ = 0;
  std::string answer_;
};

void wait_for_answers(std::vector<std::vector<StackRequest>>& ranks, const Deadline& deadline) {
  constexpr int kPauseMs = 5;
  for (bool waiting = true; waiting;) {
    const bool last_time = deadline.passed();
    waiting = false;
    for (std::vector<StackRequest>& rank : ranks) {
      for (StackRequest& request : rank) {
        request.look(last_time);
        waiting = waiting || request.waiting();
      }
    }
    if (waiting) ::poll(nullptr, 0, kPauseMs);
  }
}

std::string indented(std::string_view text) {
  std::string lines;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) lines += str("  ", line, '\n');
  }
  return lines;
}

// Where the threads of a process wait in the kernel, grouped.
std::string thread_lines(int pid) {
  std::map<std::string, int> places;
  std::error_code gone;
  for (const fs::directory_entry& thread : fs::directory_iterator(proc_folder(pid) / "task", gone)) {
    const std::string place = read_wait_place(thread.path()).text();
    ++places[place.empty() ? "is running, or waiting (place unknown)" : str("waits in ", place)];
  }
  std::string text;
  for (const auto& [place, count] : places) {
    text += count == 1 ? str("a thread ", place, '\n') : str(count, " threads, each ", place, '\n');
  }
  return text;
}

std::string body_of(const StackRequest& request) {
  if (!request.answer().empty()) return tidy_python_stack(request.answer());
  if (is_stopped(request.process().state)) return "no stack from a stopped process: `kill -CONT` it\n";
  const std::string silent = request.asked() ? "no Python stack in time\n" : "";
  return silent + thread_lines(request.process().pid);
}

// The rank's process, then its children; without pids, so that equal stacks give equal text.
std::string body_of(const std::vector<StackRequest>& processes) {
  std::vector<std::pair<std::string, int>> children;
  for (std::size_t i = 1; i < processes.size(); ++i) {
    const std::string text = str(processes[i].process().name, ":\n", indented(body_of(processes[i])));
    const auto same = std::ranges::find(children, text, &std::pair<std::string, int>::first);
    if (same == children.end()) {
      children.emplace_back(text, 1);
    } else {
      ++same->second;
    }
  }
  std::string text = body_of(processes.front());
  for (const auto& [child, count] : children) {
    text += count == 1 ? str("child ", child) : str(count, " children ", child);
  }
  return text;
}

std::string state_line(const RankState& state) {
  return str("pid ", state.pid, ": ", state.doing(), ", ", fixed(state.cpu_seconds, 1), " s of CPU\n");
}

// Ranks with equal stacks.
struct Group {
  std::string body;
  std::vector<std::string> ranks;
  std::string states;
};

std::string group_text(const Group& group) {
  return str(group.ranks.size() == 1 ? "rank " : "ranks ", join(group.ranks, ", "), '\n', indented(group.states),
             indented(group.body));
}

}  // namespace

std::string collect_stacks(std::span<const RankProcess> ranks, const fs::path& stacks, const Deadline& deadline) {
  std::vector<RankProcess> alive(ranks.begin(), ranks.end());
  const std::vector<ProcStat> all = all_processes();
  std::erase_if(alive, [&](const RankProcess& rank) { return rank.ended || process_tree(all, rank.pid).empty(); });
  // Before the requests, which interrupt their system calls.
  const std::vector<RankState> states = inspect_ranks(alive);
  std::vector<std::vector<StackRequest>> requests(alive.size());
  for (std::size_t i = 0; i < alive.size(); ++i) {
    for (const ProcStat& process : process_tree(all, alive[i].pid)) requests[i].emplace_back(process, stacks);
  }
  wait_for_answers(requests, deadline);

  std::vector<Group> groups;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    const std::string body = body_of(requests[i]);
    auto group = std::ranges::find(groups, body, &Group::body);
    if (group == groups.end()) group = groups.insert(groups.end(), {.body = body, .ranks = {}, .states = {}});
    group->ranks.push_back(str(alive[i].rank));
    group->states += state_line(states[i]);
  }
  std::ranges::stable_sort(groups, {}, [](const Group& group) { return group.ranks.size(); });
  std::vector<std::string> texts;
  for (const Group& group : groups) texts.push_back(group_text(group));
  return printable_text(join(texts, "\n"));  // it contains what the ranks wrote
}

}  // namespace tandem
