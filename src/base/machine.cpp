#include "base/machine.h"

#include <sched.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <climits>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool has_entry(std::string_view list, std::string_view entry) {
  return std::ranges::count(split(list, ','), entry) > 0;
}

// The cgroup of a process for one controller ("memory", "cpu").
struct Membership {
  bool is_v2 = false;
  std::string path;  // from the root of the hierarchy, as the process sees it
};

// Lines are "4:memory:/path"; "0::/path" is version 2, used for controllers that no version 1 line names.
std::optional<Membership> find_membership(const fs::path& proc, std::string_view controller) {
  std::optional<Membership> found;
  for (const std::string& line : split(read_if_there(proc / "cgroup").value_or(""), '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (has_entry(controllers, controller)) return Membership{.is_v2 = false, .path = line.substr(second + 1)};
    if (controllers.empty()) found = Membership{.is_v2 = true, .path = line.substr(second + 1)};
  }
  return found;
}

// A mount of the hierarchy: `folder` is the mount point of the subtree `top`.
struct Mount {
  std::string top;
  fs::path folder;
};

// "32 31 0:29 /a /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu": after the dash the file system
// type, the source and the options of the super block.
std::optional<Mount> find_mount(const fs::path& root, bool is_v2, std::string_view controller) {
  for (const std::string& line : split(read_if_there(root / "proc/self/mountinfo").value_or(""), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::ranges::find(words, "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    const bool fits = is_v2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && has_entry(dash[3], controller);
    if (fits) return Mount{.top = words[3], .folder = root / fs::path(words[4]).relative_path()};
  }
  return std::nullopt;
}

// "/a/b" below "/a" is "b". A path outside of `top`, as seen in a container, is taken as is: "a/b". One that leaves the
// container's view with ".." is `top` itself.
fs::path path_below(const std::string& top, const fs::path& path) {
  const fs::path relative = path.lexically_relative(top);
  const fs::path inside = relative.empty() || *relative.begin() == ".." ? path.relative_path() : relative;
  const bool leaves = std::ranges::count(inside, "..") > 0;
  return leaves || inside == "." ? fs::path() : inside;
}

// The cgroup of a process, then its parents up to the mount point. In a container the path may not be mounted: then its
// folders do not exist, and the mount point itself is the cgroup.
std::vector<fs::path> group_folders(const fs::path& root, const std::string& pid, std::string_view controller) {
  const auto membership = find_membership(root / "proc" / pid, controller);
  const auto mount = membership ? find_mount(root, membership->is_v2, controller) : std::nullopt;
  if (!mount) return {};
  std::vector<fs::path> folders;
  for (fs::path inside = path_below(mount->top, membership->path); !inside.empty(); inside = inside.parent_path()) {
    folders.push_back(mount->folder / inside);
  }
  folders.push_back(mount->folder);
  return folders;
}

std::optional<long long> read_number(const fs::path& file) {
  const auto text = read_if_there(file);
  return text ? to_integer(trim(*text)) : std::nullopt;
}

// The number in a line such as "oom_kill 3".
std::optional<long long> read_counter(const fs::path& file, std::string_view name) {
  for (const std::string& line : split(read_if_there(file).value_or(""), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() == 2 && words[0] == name) return to_integer(words[1]);
  }
  return std::nullopt;
}

// Version 2: "150000 100000" or "max 100000" in one file. Version 1: one file per number; -1 is no quota.
std::optional<long long> quota_cores(const fs::path& folder) {
  const std::string text = read_if_there(folder / "cpu.max").value_or("");
  const std::vector<std::string> words = split(trim(text), ' ');
  const bool is_v2 = words.size() == 2;
  const auto quota = is_v2 ? to_integer(words[0]) : read_number(folder / "cpu.cfs_quota_us");
  const auto period = is_v2 ? to_integer(words[1]) : read_number(folder / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return (*quota + *period - 1) / *period;
}

// In version 1, no limit is a number near 2^63.
std::optional<Bytes> memory_limit(const fs::path& folder) {
  constexpr long long kUnlimited = 1LL << 62;
  auto limit = read_number(folder / "memory.max");
  if (!limit) limit = read_number(folder / "memory.limit_in_bytes");
  if (!limit || *limit < 0 || *limit >= kUnlimited) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(*limit)};
}

int affinity_cores() {
  std::array<cpu_set_t, 16> set{};  // the kernel rejects a set that is too small for its number of CPUs
  if (::sched_getaffinity(0, sizeof set, set.data()) != 0) return INT_MAX;
  return CPU_COUNT_S(sizeof set, set.data());
}

// The value in a file of lines such as "model name : AMD EPYC".
std::string value_in(const fs::path& path, std::string_view name) {
  return value_of_line(read_if_there(path).value_or(""), name);
}

// "24 kB"
Bytes kibibytes(std::string_view text) { return {to_unsigned(text.substr(0, text.find(' '))).value_or(0) * 1024}; }

}  // namespace

int usable_cores(const fs::path& root) {
  long long cores = affinity_cores();
  for (const fs::path& folder : group_folders(root, "self", "cpu")) {
    cores = std::min(cores, quota_cores(folder).value_or(cores));
  }
  return static_cast<int>(std::max(1LL, cores));
}

int threads_per_core(const fs::path& root) {
  const auto number = [&](const char* key) {
    return static_cast<int>(to_unsigned(value_in(root / "proc/cpuinfo", key)).value_or(1));
  };
  return std::max(1, number("siblings") / std::max(1, number("cpu cores")));
}

Variables openmp_variables(const Lookup& variable) {
  constexpr const char* kSpinCount = "GOMP_SPINCOUNT";
  if (variable("OMP_WAIT_POLICY") || variable(kSpinCount)) return {};
  return {{kSpinCount, "1000"}};
}

std::string cpu_name(const fs::path& root) {
  const std::string name = value_in(root / "proc/cpuinfo", "model name");
  return name.empty() ? "CPU" : name;
}

Bytes peak_memory(const fs::path& root) { return kibibytes(value_in(root / "proc/self/status", "VmHWM")); }

MemoryCgroup read_memory_cgroup(const fs::path& root, const std::string& pid) {
  MemoryCgroup group;
  for (const fs::path& folder : group_folders(root, pid, "memory")) {
    const auto limit = memory_limit(folder);
    if (limit && (!group.limit || limit->count < group.limit->count)) group.limit = limit;
    if (!group.folder.empty()) continue;
    // Version 1 counts a kill only in the victim's own group, version 2 in the parents too: the first folder suffices.
    if (const auto kills = count_oom_kills(folder)) {
      group.folder = folder;
      group.oom_kills = *kills;
    }
  }
  return group;
}

std::optional<std::int64_t> count_oom_kills(const fs::path& folder) {
  auto kills = read_counter(folder / "memory.events", "oom_kill");
  if (!kills) kills = read_counter(folder / "memory.oom_control", "oom_kill");
  return kills;
}

Bytes usable_memory(const fs::path& root) {
  const Bytes memory = kibibytes(value_in(root / "proc/meminfo", "MemTotal"));
  const auto limit = read_memory_cgroup(root).limit;
  return limit && limit->count < memory.count ? *limit : memory;
}

std::optional<Space> shm_space(const fs::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return std::nullopt;
  return Space{.free = {info.f_bavail * info.f_frsize}, .total = {info.f_blocks * info.f_frsize}};
}

bool is_notebook(const Lookup& lookup) { return lookup("JPY_PARENT_PID") || lookup("KAGGLE_KERNEL_RUN_TYPE"); }

bool is_kaggle(const Lookup& lookup) {
  // KAGGLE_USERNAME and KAGGLE_KEY are also set elsewhere, for downloads.
  return lookup("KAGGLE_KERNEL_RUN_TYPE") || lookup("KAGGLE_URL_BASE") || lookup("KAGGLE_CONTAINER_NAME");
}

std::string kaggle_accelerator_note(std::size_t num_gpus) {
  return str(num_gpus == 0 ? "no GPU is" : "one GPU is",
             " visible: for two, choose \"GPU T4 x2\" under Settings > Accelerator");
}

}  // namespace tandem
