#pragma once

#include <tandem/precision.h>
#include <torch/types.h>

namespace tandem {

DeviceFacts facts_of(torch::Device device);

// While it lives, this thread's operations on the device cast their inputs to the precision as torch's autocast lists
// say; Fp32 turns autocast off. Compute the loss inside, run backward outside.
//
// Torch's cache of casts is off inside: it can outlive an update of the weights it was made from, and one made without
// gradients can be found by a pass that needs them. A weight that a forward pass uses twice is cast twice instead.
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
