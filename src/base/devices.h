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
  std::string uuid = {};  // "GPU-8932f937-d72c-..."; empty where the driver does not say
  std::string name = {};  // "Tesla T4"; likewise

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// Every GPU whose device node is there, in bus order, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts them. It looks at names
// and at the driver's own files only: no library is loaded and no GPU wakes up.
std::vector<Gpu> list_gpus(const std::filesystem::path& root = "/");

// What CUDA would let a child see, as names that CUDA_VISIBLE_DEVICES takes: "0", "GPU-...", "MIG-...". CUDA's rules:
// no variable shows every GPU, an empty one none; the list ends at the first entry that is not there; an entry that
// comes twice makes it empty; a UUID may be cut short; MIG names are believed.
std::vector<std::string> visible_gpus(std::span<const Gpu> gpus,
                                      const std::optional<std::string>& cuda_visible_devices);

// Which device each rank of this node uses.
struct DevicePlan {
  int num_ranks = 1;
  std::optional<std::string> cuda_visible_devices = {};  // for every rank; nothing: as inherited
  std::vector<std::string> devices = {};                 // of each local rank: "cuda:0", "cpu"
  std::vector<std::string> notes = {};                   // what the user should know
};

// `device` is what --device says: nothing or "auto", "all" or "cuda", "cpu", or a list whose numbers count `visible`,
// so that a scheduler's choice is never escaped. An entry that comes twice is shared by two ranks. With more ranks than
// GPUs it is an Error of kind Device if `strict`, else a note; a list that is too short, or names what is not visible,
// is always an Error. `installed` lets a UUID be found where `visible` holds numbers.
DevicePlan plan_devices(const std::optional<std::string>& device, std::optional<int> count, bool strict,
                        const std::vector<std::string>& visible, std::span<const Gpu> installed = {});

}  // namespace tandem
