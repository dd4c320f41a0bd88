#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace tandem {

// Whether /proc shows the pids of our own PID namespace. After `unshare --pid` without `--mount-proc` it shows those of
// the outer one: there the pid of a rank is the number of some other process.
bool proc_is_ours();

// /proc/PID; a path that does not exist if /proc is not ours.
std::filesystem::path proc_folder(int pid);

// The fields of /proc/PID/stat that we use.
struct ProcStat {
  int pid = 0;
  std::string name;  // of the program, at most 15 characters
  char state = 'X';  // R, S, D, T, t, Z; X: gone
  int parent = 0;
  double cpu_seconds = 0;          // of the process and the children it has waited for
  std::int64_t started_ticks = 0;  // start time since boot; distinguishes processes that reuse a pid
};

// Nothing if there is no such process, or the text is malformed.
std::optional<ProcStat> parse_stat(std::string_view text);
std::optional<ProcStat> read_stat(int pid);

// All visible processes; the process `pid` and its descendants, itself first.
std::vector<ProcStat> all_processes();
std::vector<ProcStat> process_tree(const std::vector<ProcStat>& all, int pid);

// The children of a process, zombies too.
std::vector<int> child_processes(int pid);

// The command line in one line, at most 200 bytes, or the short name if the command line is empty. Empty if there is no
// such process.
std::string command_of(int pid);

// Whether a ProcStat::state means stopped by a signal or a debugger.
bool is_stopped(char state);

// False for a zombie, too.
bool is_running(int pid, std::int64_t started_ticks);

// The first line of a small file in /proc; empty if it cannot be read.
std::string read_line(const std::filesystem::path& path);

// Whether a signal set of /proc/PID/status, such as "SigCgt", contains a signal; false if it cannot be read.
bool has_signal(const std::filesystem::path& status, std::string_view set, int signal);

// A signal sent through a pidfd cannot reach a later process with the same pid. Empty if there is no such process.
Fd open_pidfd(int pid);
bool send_signal(const Fd& pidfd, int signal);  // false: errno is set

}  // namespace tandem
