#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

namespace tandem {

// A process that belongs to a run.
struct Straggler {
  int pid = 0;
  std::string command;
};

// The processes that carry the run's id in their environment (TANDEM_RUN_ID=ID, or ID/... for a job inside the job),
// whoever their parent is by now; without zombies, ourselves and `except`.
std::vector<Straggler> find_processes(const std::string& run_id, std::span<const int> except = {});

// Kills them until two sweeps in a row find none, since one may fork while we look, or until the limit. Returns how
// many were left: the kernel does not let go of a process that waits for a device. A process whose number was given to
// another in the meantime is never killed.
int kill_processes(const std::string& run_id, std::span<const int> except, Deadline limit);

// The children of a process, zombies too.
std::vector<int> child_processes(int pid);

// The program and its arguments in one line, with blanks between, or its short name where these are gone; shortened to
// 200 bytes. Empty when there is no such process.
std::string command_of(int pid);

}  // namespace tandem
