#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace tandem {

// What the kernel tells of a process in /proc/PID/stat.
struct ProcStat {
  int pid = 0;
  std::string name;  // of the program, cut to 15 letters
  char state = 'X';  // R, S, D, T, t, Z; X: gone
  int parent = 0;
  double cpu_seconds = 0;          // its own, and that of children it has waited for
  std::int64_t started_ticks = 0;  // since the machine was started; tells a process from a later one with its pid
};

// Nothing when there is no such process, or the text is no stat.
std::optional<ProcStat> parse_stat(std::string_view text);
std::optional<ProcStat> read_stat(int pid);

// All processes that we may see, and those of them that stem from `pid`: itself first.
std::vector<ProcStat> all_processes();
std::vector<ProcStat> process_tree(const std::vector<ProcStat>& all, int pid);

// The children of a process, zombies too.
std::vector<int> child_processes(int pid);

// The program and its arguments in one line, with blanks between, or its short name where these are gone; shortened to
// 200 bytes. Empty when there is no such process.
std::string command_of(int pid);

// Whether a state of ProcStat is that of a process stopped by a signal or a debugger.
bool is_stopped(char state);

// False as well for one that has ended and only waits to be collected.
bool is_running(int pid, std::int64_t started_ticks);

// The first line of a small file under /proc; empty when it cannot be read.
std::string read_line(const std::filesystem::path& path);

// Whether a set of signals of /proc/PID/status, such as "SigCgt", holds a signal; false when it cannot be read.
bool has_signal(const std::filesystem::path& status, std::string_view set, int signal);

// Holds on to one process: a signal through it can hit no later one with the same pid. Without value when there is
// none.
Fd open_pidfd(int pid);
bool send_signal(const Fd& pidfd, int signal);  // false: errno says why

}  // namespace tandem
