#include "launch/devices.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/text.h"

namespace tandem {

DevicePlan plan_devices(const std::optional<std::string>& device, std::optional<int> count, bool strict,
                        const std::vector<std::string>& gpus) {
  DevicePlan plan;
  const bool cpu = device ? *device == "cpu" : gpus.empty();
  const std::vector<std::string> asked = device && !cpu ? split(*device, ',') : gpus;
  std::vector<std::string> visible;
  for (const std::string& gpu : asked) {
    if (std::ranges::count(visible, gpu) == 0) visible.push_back(gpu);
  }
  plan.num_ranks = count.value_or(cpu ? 1 : static_cast<int>(asked.size()));
  const auto num_ranks = static_cast<std::size_t>(plan.num_ranks);
  if (!cpu && num_ranks > asked.size()) {
    const std::string sentence = str(num_ranks, " ranks for ", asked.size(), " GPUs: ", join(asked, ", "));
    if (strict) fail(ErrorKind::Device, sentence, "--device 0,0 lets two ranks share GPU 0");
    plan.notes.push_back(sentence);
  }
  for (std::size_t i = 0; i < num_ranks; ++i) {
    if (cpu) {
      plan.devices.emplace_back("cpu");
    } else {
      const auto at = std::ranges::find(visible, asked[i % asked.size()]) - visible.begin();
      plan.devices.push_back(str("cuda:", at));
    }
  }
  if (device) plan.cuda_visible_devices = cpu ? "" : join(visible, ",");
  return plan;
}

}  // namespace tandem
