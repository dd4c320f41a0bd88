#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// A GPU of this machine.
struct Gpu {
  int number = 0;         // N of /dev/nvidiaN
  std::string uuid = {};  // "GPU-8932f937-d72c-..."; empty if unknown
  std::string name = {};  // "Tesla T4"; empty if unknown

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// Every GPU that has a device node, in PCI bus order (CUDA_DEVICE_ORDER=PCI_BUS_ID). Reads the device nodes and the
// driver's files in /proc: loads no library and initialises no GPU.
std::vector<Gpu> list_gpus(const std::filesystem::path& root = "/");

// The GPUs that CUDA makes visible to a child process, as entries of CUDA_VISIBLE_DEVICES: "0", "GPU-...", "MIG-...".
// CUDA's rules: without the variable all GPUs, with an empty one none; the list ends at the first unknown entry; a
// duplicate entry makes it empty; a UUID may be abbreviated. MIG names are not checked.
std::vector<std::string> visible_gpus(std::span<const Gpu> gpus,
                                      const std::optional<std::string>& cuda_visible_devices);

// Why torch cannot use the GPUs that are visible, and what to do. `has_cuda`: whether torch was built with CUDA.
struct UnusableGpus {
  std::string message;  // "2 GPUs are visible, but the torch of this program has no CUDA"
  std::string hint;
};
UnusableGpus unusable_gpus(std::size_t num_visible, bool has_cuda);

std::vector<std::string> visible_gpus_here();  // to this process

// Which device each rank of this node uses.
struct DevicePlan {
  int num_ranks = 1;
  std::optional<std::string> cuda_visible_devices = {};  // for every rank; nothing: inherited
  std::vector<std::string> devices = {};                 // of each local rank: "cuda:0", "cpu"
  std::vector<std::string> notes = {};                   // what the user should know
};

// `device` is the value of --device: nothing or "auto", "all" or "cuda", "cpu", or a list whose numbers are indices
// into `visible`, so that only GPUs given by a scheduler are used. A GPU listed twice is shared by two ranks. More
// ranks than GPUs: an Error of kind Device if `strict`, else a note. A list that is too short or names a GPU that is
// not visible is always an Error. `installed` maps UUIDs to the numbers in `visible`.
DevicePlan plan_devices(const std::optional<std::string>& device, std::optional<int> count, bool strict,
                        const std::vector<std::string>& visible, std::span<const Gpu> installed = {});

}  // namespace tandem
