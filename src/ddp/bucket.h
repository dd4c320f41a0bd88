#pragma once

#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// Gradients that travel as one: the memory in which they lie side by side.
struct Bucket {
  torch::Tensor flat;
  torch::Tensor wire;                 // travels instead of `flat`, if it is defined
  std::vector<torch::Tensor> slices;  // of `flat`, one for each parameter and laid out like it
  torch::Tensor extra;                // the end of `flat`
  Work work;

  // Makes `flat` the sum over the ranks, divided; returns the count of bytes that travel. `work` says when it is done.
  std::int64_t reduce(Communicator& comm, double divisor);
};

// For parameters of one type, and `num_extra` numbers that travel along.
Bucket make_bucket(std::span<const torch::Tensor> parameters, std::int64_t num_extra, WireType wire,
                   Communicator& comm);

}  // namespace tandem
