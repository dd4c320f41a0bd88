#pragma once

#include <tandem/units.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/worker_env.h"

namespace tandem {

// The number of cores available to this process: its affinity mask, limited by the CPU quota of its cgroups (rounded
// up). At least 1.
int usable_cores(const std::filesystem::path& root = "/");

// Hardware threads that share a core, and so its arithmetic units: 2 with SMT (hyper-threading); 1 if unknown.
int threads_per_core(const std::filesystem::path& root = "/");

// What a program with OpenMP threads needs where cores are shared, unless the user has set such a variable. Threads of
// GNU's OpenMP that wait for each other keep their cores busy for milliseconds, which other processes then do not get,
// among them those that they wait for. 1000 turns are what it does itself with more threads than cores.
Variables openmp_variables(const Lookup& variable);

// "AMD EPYC 7B13"; "CPU" if unknown.
std::string cpu_name(const std::filesystem::path& root = "/");

// Peak resident memory of this process.
Bytes peak_memory(const std::filesystem::path& root = "/");

// The memory cgroup of a process, of version 1 or 2.
struct MemoryCgroup {
  std::filesystem::path folder;  // empty: none, or not readable
  std::optional<Bytes> limit;    // the lowest of its own and its parents' limits
  std::int64_t oom_kills = 0;    // number of out-of-memory kills so far
};

MemoryCgroup read_memory_cgroup(const std::filesystem::path& root = "/", const std::string& pid = "self");

// The number of out-of-memory kills in a cgroup folder; nothing if it no longer exists.
std::optional<std::int64_t> count_oom_kills(const std::filesystem::path& folder);

// The memory available to this process: the machine's, or the limit of its cgroups if lower.
Bytes usable_memory(const std::filesystem::path& root = "/");

// Size of a file system.
struct Space {
  Bytes free;
  Bytes total;
};
std::optional<Space> shm_space(const std::filesystem::path& folder = "/dev/shm");

// Whether this runs in a notebook cell, whose terminal cannot redraw a line.
bool is_notebook(const Lookup& lookup);

bool is_kaggle(const Lookup& lookup);

// For a notebook of Kaggle with no GPU or one.
std::string kaggle_accelerator_note(std::size_t num_gpus);

}  // namespace tandem
