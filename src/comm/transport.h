#pragma once

#include <tandem/communicator.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace tandem {

// The interface of the transports: solo, shm, nccl. The Communicator has checked the arguments: tensors are contiguous,
// of a supported type (bool is passed as uint8) and of matching sizes; calls come from one thread at a time. All ranks
// make the same calls; a transport that detects a mismatch throws an Error on every rank.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;

  virtual Work all_reduce(torch::Tensor buffer, ReduceOp op, double divisor) = 0;
  virtual Work all_gather(torch::Tensor input, torch::Tensor output) = 0;
  virtual Work reduce_scatter(torch::Tensor input, torch::Tensor output, ReduceOp op) = 0;
  virtual Work broadcast(torch::Tensor buffer, int root) = 0;
  virtual Work barrier() = 0;

  // A 1-D tensor that collectives use without a copy, where the device of `options` allows it.
  virtual torch::Tensor empty(std::int64_t count, const torch::TensorOptions& options) = 0;

  // The device whose tensors need no staging.
  virtual torch::Device device() const = 0;

  // A second transport of the same ranks, ordered independently. All ranks call it.
  virtual std::unique_ptr<Transport> duplicate() = 0;

  virtual void set_step(std::int64_t step) = 0;

  // Blocks until the collectives that were waited for have completed on the device; throws if one has failed.
  virtual void confirm() = 0;

  // True once a collective has failed; later ones fail too.
  virtual bool failed() const = 0;
};

// A communicator over a transport made by the caller: for tests and benchmarks. It belongs to the calling thread.
Communicator communicator_over(const World& world, torch::Device device, std::unique_ptr<Transport> transport);

}  // namespace tandem
