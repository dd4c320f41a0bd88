#pragma once

#include <tandem/communicator.h>
#include <tandem/work.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace tandem {

// How tensors travel between the ranks: the one seam of comm/. A Communicator has checked what it passes on: tensors
// are contiguous, of a type that can be reduced (bool comes as uint8), and fit together; calls come from one thread at
// a time. All ranks make the same calls; a transport that sees that they did not throws an Error on every rank.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;

  virtual Work all_reduce(torch::Tensor buffer, ReduceOp op, double divisor) = 0;
  virtual Work all_gather(torch::Tensor input, torch::Tensor output) = 0;
  virtual Work reduce_scatter(torch::Tensor input, torch::Tensor output, ReduceOp op) = 0;
  virtual Work broadcast(torch::Tensor buffer, int root) = 0;
  virtual Work barrier() = 0;

  // Memory for buffers that need no copy, where the device of `options` allows it.
  virtual torch::Tensor empty(std::int64_t count, const torch::TensorOptions& options) = 0;

  // Where tensors lie that travel best.
  virtual torch::Device device() const = 0;

  // Between the same ranks, with an order of its own. All ranks call it.
  virtual std::unique_ptr<Transport> duplicate() = 0;

  virtual void set_step(std::int64_t step) = 0;

  // Blocks until what was waited for is really there; an Error if a collective has failed. On a GPU `wait` only orders.
  virtual void confirm() = 0;

  // True once a collective has failed: the ranks will not meet again.
  virtual bool failed() const = 0;
};

}  // namespace tandem
