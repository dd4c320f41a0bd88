#pragma once

#include <tandem/units.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/worker_env.h"

namespace tandem {

// How many cores this process can keep busy: those it may run on, and no more than its cgroups' CPU quotas pay for
// (rounded up). At least 1.
int usable_cores(const std::filesystem::path& root = "/");

// "AMD EPYC 7B13"; "CPU" where the kernel does not say.
std::string cpu_name(const std::filesystem::path& root = "/");

// What this process has held in memory at its highest.
Bytes peak_memory(const std::filesystem::path& root = "/");

// The memory cgroup of a process, of version 1 or 2.
struct MemoryCgroup {
  std::filesystem::path folder;  // empty: there is none that we may read
  std::optional<Bytes> limit;    // the lowest one that binds it, its own or that of a parent
  std::int64_t oom_kills = 0;    // processes in it that the kernel killed for memory, so far
};

MemoryCgroup read_memory_cgroup(const std::filesystem::path& root = "/", const std::string& pid = "self");

// The kills counted in such a folder by now; nothing when it is gone.
std::optional<std::int64_t> count_oom_kills(const std::filesystem::path& folder);

// What this process can have: the machine's memory, or the limit of its cgroups if that is less.
Bytes usable_memory(const std::filesystem::path& root = "/");

// Room on a file system.
struct Space {
  Bytes free;
  Bytes total;
};
std::optional<Space> shm_space(const std::filesystem::path& folder = "/dev/shm");

// A cell of a notebook started us: it has a terminal, but not one that can redraw a line.
bool is_notebook(const Lookup& lookup);

bool is_kaggle(const Lookup& lookup);

}  // namespace tandem
