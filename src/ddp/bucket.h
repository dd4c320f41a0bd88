#pragma once

#include <tandem/communicator.h>
#include <tandem/ddp.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// Gradients that are reduced together, in contiguous memory.
struct Bucket {
  torch::Tensor flat;
  torch::Tensor wire;                 // if defined: sent instead of `flat`
  std::vector<torch::Tensor> slices;  // views of `flat`, one per parameter, with its strides
  torch::Tensor extra;                // the tail of `flat`
  Work work;

  // Starts the all-reduce of `flat` (sum over the ranks, divided by `divisor`) as `work`; returns the bytes sent.
  std::int64_t reduce(Communicator& comm, double divisor);
};

// For parameters of one type, plus `num_extra` elements that are reduced with them.
Bucket make_bucket(std::span<const torch::Tensor> parameters, std::int64_t num_extra, WireType wire,
                   Communicator& comm);

}  // namespace tandem
