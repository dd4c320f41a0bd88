#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem {

// Which rank of this host uses which device.
struct DevicePlan {
  int num_ranks = 1;
  std::optional<std::string> cuda_visible_devices;  // nothing: as inherited
  std::vector<std::string> devices;                 // of each local rank: "cuda:0", "cpu"
  std::vector<std::string> notes;
};

// `device` is what --device says, `count` how many ranks were asked for, `gpus` the identifiers of the visible GPUs.
// `strict`: more ranks than GPUs are an Error; otherwise they share, with a note.
DevicePlan plan_devices(const std::optional<std::string>& device, std::optional<int> count, bool strict,
                        const std::vector<std::string>& gpus);

}  // namespace tandem
