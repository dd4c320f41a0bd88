#pragma once

#include <tandem/precision.h>
#include <torch/types.h>

namespace tandem {

DeviceFacts facts_of(torch::Device device);

// torch.autocast as a scope guard, for this thread and one device type; Fp32 disables autocast. Compute the loss
// inside, call backward() outside.
//
// The weight cache of autocast is disabled inside: a cached cast can become stale after an optimizer step, and a cast
// made under no_grad could be reused by a training pass. A weight that one forward pass uses twice is cast twice
// instead.
class [[nodiscard]] Autocast {
 public:
  Autocast(torch::DeviceType device, Precision precision);
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  torch::DeviceType device_;
  bool was_enabled_;
  torch::ScalarType type_before_;
  bool had_cache_;
};

}  // namespace tandem
