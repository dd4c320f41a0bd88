#include "base/devices.h"

#include <tandem/error.h>

#include <algorithm>
#include <climits>
#include <system_error>

#include "base/fd.h"
#include "base/text.h"
#include "base/worker_env.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Sorted; empty if the folder does not exist.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<int> to_count(std::string_view text) {
  const auto number = to_unsigned(text);
  if (!number || *number > INT_MAX) return std::nullopt;
  return static_cast<int>(*number);
}

// The driver's files are named by bus address ("0000:3b:00.0"), so their order is the bus order.
std::vector<Gpu> described_gpus(const fs::path& root) {
  const fs::path folder = root / "proc/driver/nvidia/gpus";
  std::vector<Gpu> gpus;
  for (const std::string& address : names_in(folder)) {
    const std::string text = read_if_there(folder / address / "information").value_or("");
    const auto number = to_count(value_of_line(text, "Device Minor"));
    if (number)
      gpus.push_back(
          {.number = *number, .uuid = value_of_line(text, "GPU UUID"), .name = value_of_line(text, "Model")});
  }
  return gpus;
}

std::vector<int> device_nodes(const fs::path& root) {
  constexpr std::string_view kPrefix = "nvidia";
  std::vector<int> numbers;
  for (const std::string& name : names_in(root / "dev")) {
    if (!name.starts_with(kPrefix)) continue;
    if (const auto number = to_count(std::string_view(name).substr(kPrefix.size()))) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

bool is_uuid(std::string_view name) { return name.starts_with("GPU-") && name.size() > 4; }
bool is_mig(std::string_view name) { return name.starts_with("MIG-"); }

// A list for CUDA holds either numbers or names; CUDA stops reading where the kind of entry changes.
bool is_name(std::string_view entry) { return is_uuid(entry) || is_mig(entry); }

// The index of the GPU with this prefix of a UUID, if there is exactly one.
std::optional<std::size_t> find_uuid(std::span<const Gpu> gpus, std::string_view prefix) {
  const auto matches = [&](const Gpu& gpu) { return gpu.uuid.starts_with(prefix); };
  if (std::ranges::count_if(gpus, matches) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find_if(gpus, matches) - gpus.begin());
}

// Whether no UUID is known: some containers hide the driver's files.
bool is_silent(std::span<const Gpu> gpus) {
  return std::ranges::all_of(gpus, [](const Gpu& gpu) { return gpu.uuid.empty(); });
}

// The same text for all spellings of one GPU; nothing if there is no such GPU.
std::optional<std::string> identity(std::span<const Gpu> gpus, const std::string& entry) {
  if (is_mig(entry)) return entry;
  if (is_uuid(entry)) {
    if (is_silent(gpus) && !gpus.empty()) return entry;
    const auto place = find_uuid(gpus, entry);
    return place ? std::optional(gpus[*place].uuid) : std::nullopt;
  }
  const auto number = to_unsigned(trim(entry));
  return number && *number < gpus.size() ? std::optional(str(*number)) : std::nullopt;
}

std::string gpus_text(std::size_t count) { return str(count, count == 1 ? " GPU" : " GPUs"); }

std::string visible_text(const std::vector<std::string>& visible) {
  if (visible.empty()) return "no GPU is visible";
  const std::string is = visible.size() == 1 ? " is visible: " : " are visible: ";
  return str(gpus_text(visible.size()), is, join(visible, ", "));
}

// "0,0,1,1" for four ranks on 0 and 1; for more than 16 ranks only an example.
std::string sharing_hint(const std::vector<std::string>& entries, int count) {
  const std::size_t ranks = count <= 16 ? static_cast<std::size_t>(count) : 2 * entries.size();
  std::vector<std::string> shared;
  for (std::size_t rank = 0; rank < ranks; ++rank) shared.push_back(entries[rank * entries.size() / ranks]);
  return str("to share a GPU between ranks, list it once per rank, as in `--device ", join(shared, ","), '`');
}

std::vector<std::string> numbered_devices(int count, std::size_t num_gpus) {
  std::vector<std::string> devices;
  for (int rank = 0; rank < count; ++rank) devices.push_back(str("cuda:", static_cast<std::size_t>(rank) % num_gpus));
  return devices;
}

DevicePlan plan_cpu(std::optional<int> count) {
  DevicePlan plan{.num_ranks = count.value_or(1)};
  plan.devices.assign(static_cast<std::size_t>(plan.num_ranks), "cpu");
  return plan;
}

DevicePlan plan_every_gpu(std::optional<int> count, bool strict, const std::vector<std::string>& visible) {
  const int num_gpus = static_cast<int>(visible.size());
  const int num_ranks = count.value_or(num_gpus);
  DevicePlan plan{.num_ranks = num_ranks, .devices = numbered_devices(num_ranks, visible.size())};
  if (num_ranks <= num_gpus) return plan;
  std::vector<std::string> numbers;
  for (int gpu = 0; gpu < num_gpus; ++gpu) numbers.push_back(str(gpu));
  const std::string message = str(num_ranks, " ranks need a GPU each, but ", visible_text(visible));
  const std::string hint = str(sharing_hint(numbers, num_ranks), "; `--device cpu` uses none");
  if (strict) fail(ErrorKind::Device, message, hint);
  plan.notes.push_back(str(message, "; ", hint));
  return plan;
}

// Whether the GPU of that UUID is visible. If no UUIDs are known, the answer is yes.
bool shows_uuid(const std::vector<std::string>& visible, std::span<const Gpu> installed, std::string_view uuid) {
  const auto place = find_uuid(installed, uuid);
  return std::ranges::any_of(visible, [&](const std::string& entry) {
    if (is_uuid(entry)) return entry.starts_with(uuid) || uuid.starts_with(entry);
    if (is_mig(entry)) return false;
    return place ? entry == str(*place) : is_silent(installed);
  });
}

// Whether a MIG device is visible. It can be checked only against visible MIG names.
bool shows_mig(const std::vector<std::string>& visible, std::string_view name) {
  if (!std::ranges::any_of(visible, is_mig)) return !visible.empty();
  return std::ranges::count(visible, name) > 0;
}

// One entry of --device as an entry of CUDA_VISIBLE_DEVICES.
std::string resolve(const std::string& entry, const std::vector<std::string>& visible, std::span<const Gpu> installed) {
  std::string_view text = entry;
  if (text.starts_with("cuda:")) text.remove_prefix(5);
  if (const auto number = to_unsigned(text); number && *number < visible.size()) return visible[*number];
  const bool is_there = is_uuid(text) ? shows_uuid(visible, installed, text) : is_mig(text) && shows_mig(visible, text);
  if (is_there) return std::string(text);
  if (!is_name(text) && !to_unsigned(text)) {
    fail(ErrorKind::Config, str("device '", entry, "' is not a number, UUID (GPU-...) or MIG name (MIG-...)"),
         "try `--device 0,1`, `--device all` or `--device cpu`");
  }
  fail(ErrorKind::Device, str("device ", entry, " not found; ", visible_text(visible)),
       visible.empty() ? "try `--device cpu`" : "numbers are indices into the visible GPUs, from 0");
}

DevicePlan plan_list(const std::vector<std::string>& entries, std::optional<int> count,
                     const std::vector<std::string>& visible, std::span<const Gpu> installed) {
  std::vector<std::string> shown;
  DevicePlan plan;
  for (const std::string& entry : entries) {
    const std::string name = resolve(entry, visible, installed);
    const auto found = std::ranges::find(shown, name);
    plan.devices.push_back(str("cuda:", found - shown.begin()));
    if (found == shown.end()) shown.push_back(name);
  }
  plan.num_ranks = count.value_or(static_cast<int>(entries.size()));
  if (plan.num_ranks > static_cast<int>(entries.size())) {
    fail(ErrorKind::Device, str(plan.num_ranks, " ranks, but --device lists ", gpus_text(entries.size())),
         sharing_hint(entries, plan.num_ranks));
  }
  if (std::ranges::any_of(shown, is_name) && !std::ranges::all_of(shown, is_name)) {
    fail(ErrorKind::Config,
         str("device list ", join(entries, ","), " mixes numbers and names, which CUDA does not support"),
         "use only numbers or only names");
  }
  plan.devices.resize(static_cast<std::size_t>(plan.num_ranks));
  plan.cuda_visible_devices = join(shown, ",");
  return plan;
}

std::vector<std::string> trimmed_entries(std::string_view text) {
  std::vector<std::string> entries;
  for (const std::string& part : split(text, ',')) entries.emplace_back(trim(part));
  return entries;
}

}  // namespace

std::vector<Gpu> list_gpus(const fs::path& root) {
  std::vector<int> nodes = device_nodes(root);
  std::vector<Gpu> gpus;
  if (nodes.empty()) return gpus;
  for (Gpu& gpu : described_gpus(root)) {
    if (std::erase(nodes, gpu.number) == 1) gpus.push_back(std::move(gpu));
  }
  for (const int number : nodes) gpus.push_back({.number = number});
  return gpus;
}

std::vector<std::string> visible_gpus(std::span<const Gpu> gpus,
                                      const std::optional<std::string>& cuda_visible_devices) {
  std::vector<std::string> visible;
  if (!cuda_visible_devices) {
    for (std::size_t place = 0; place < gpus.size(); ++place) visible.push_back(str(place));
    return visible;
  }
  std::vector<std::string> seen;
  for (const std::string& entry : split(*cuda_visible_devices, ',')) {
    const auto name = identity(gpus, entry);
    if (!name || (!seen.empty() && is_name(*name) != is_name(seen[0]))) break;
    if (std::ranges::count(seen, *name) > 0) return {};
    seen.push_back(*name);
    visible.emplace_back(trim(entry));
  }
  return visible;
}

UnusableGpus unusable_gpus(std::size_t num_visible, bool has_cuda) {
  const std::string are = num_visible == 1 ? " is visible, but " : " are visible, but ";
  if (has_cuda) {
    return {.message = str(gpus_text(num_visible), are, "torch cannot use ", num_visible == 1 ? "it" : "them"),
            .hint = "check the driver with nvidia-smi, or use `--device cpu`"};
  }
  return {.message = str(gpus_text(num_visible), are, "the torch of this program has no CUDA"),
          .hint = "build it with one that has: `make build TORCH_DIR=folder`; or use `--device cpu`"};
}

std::vector<std::string> visible_gpus_here() {
  return visible_gpus(list_gpus(), environment_variable_or_empty("CUDA_VISIBLE_DEVICES"));
}

DevicePlan plan_devices(const std::optional<std::string>& device, std::optional<int> count, bool strict,
                        const std::vector<std::string>& visible, std::span<const Gpu> installed) {
  const std::string_view text = device ? trim(*device) : "auto";
  if (text == "cpu") {
    DevicePlan plan = plan_cpu(count);
    plan.cuda_visible_devices = "";
    return plan;
  }
  const bool wants_gpus = text == "all" || text == "cuda";
  if (text != "auto" && !wants_gpus) return plan_list(trimmed_entries(text), count, visible, installed);
  if (!visible.empty()) return plan_every_gpu(count, strict, visible);
  if (wants_gpus && strict) {
    fail(ErrorKind::Device, str("--device ", text, ", but no GPU is visible"),
         "check the driver and CUDA_VISIBLE_DEVICES, or try `--device cpu`");
  }
  return plan_cpu(count);
}

}  // namespace tandem
