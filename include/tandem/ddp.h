#pragma once

#include <tandem/communicator.h>
#include <tandem/units.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

class Reducer;

// What becomes of buffers, such as the statistics of a batch norm, after each synchronised pass.
enum class BufferSync {
  Broadcast,  // every rank gets those of rank 0
  Average,    // floating-point ones become the mean over the ranks, the rest those of rank 0
  Off,        // each rank keeps its own
};

inline std::vector<std::pair<std::string, BufferSync>> enum_names(BufferSync) {
  return {{"broadcast", BufferSync::Broadcast}, {"average", BufferSync::Average}, {"off", BufferSync::Off}};
}

// What gradients travel as. 16 bits halve the traffic of float gradients and round them.
enum class WireType { Full, Bf16, Fp16 };

inline std::vector<std::pair<std::string, WireType>> enum_names(WireType) {
  return {{"full", WireType::Full}, {"bf16", WireType::Bf16}, {"fp16", WireType::Fp16}};
}

struct DdpOptions {
  Bytes first_bucket{1 << 20};
  Bytes bucket{25 << 20};
  BufferSync buffers = BufferSync::Broadcast;
  WireType wire = WireType::Full;
};

template <class Visitor>
void visit_fields(DdpOptions& o, Visitor&& field) {
  field("first-bucket", o.first_bucket, "gradients that travel together first; small, so that they leave early");
  field("bucket", o.bucket, "gradients that travel together from then on");
  field("buffers", o.buffers, "how buffers are kept equal");
  field("wire", o.wire, "what gradients travel as");
}

struct DdpStats {
  std::int64_t passes = 0;              // backward passes that were synchronised
  std::int64_t buckets = 0;             // reduced
  std::int64_t bytes = 0;               // of gradients, as they were sent
  std::chrono::nanoseconds exposed{0};  // in which a backward pass had nothing left to do but wait for peers
};

// While it lives, backward passes only add to this rank's gradients.
class [[nodiscard]] NoSync {
 public:
  explicit NoSync(int& depth) : depth_(&depth) { ++*depth_; }
  NoSync(NoSync&& other) noexcept : depth_(std::exchange(other.depth_, nullptr)) {}
  NoSync& operator=(NoSync&& other) noexcept {
    std::swap(depth_, other.depth_);
    return *this;
  }
  ~NoSync() {
    if (depth_ != nullptr) --*depth_;
  }

 private:
  int* depth_;
};

namespace detail {

std::vector<torch::Tensor> distinct_parameters(const torch::nn::Module& module);

// What DistributedDataParallel does whatever the type of its module.
class DataParallel {
 public:
  DataParallel(const torch::nn::Module* module, Communicator& comm, const DdpOptions& options);
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;
  ~DataParallel();

  void begin_forward();
  NoSync no_sync();
  void finish();
  const DdpStats& stats() const;
  Reducer& reducer() { return *reducer_; }

 private:
  std::shared_ptr<Reducer> reducer_;
};

}  // namespace detail

// A module that is trained by all ranks together, each on its own part of a batch. To make it, every rank brings the
// same module (an Error names the first difference) and gets rank 0's parameters and buffers. When `backward()` of a
// loss returns, each `.grad` is the mean over the ranks. It lies in memory that the next pass uses again.
//
// Each `forward` allows one backward pass. A parameter that the loss does not depend on counts as a gradient of zero;
// if that is so on every rank, its `.grad` is left alone. The communicator
// outlives it and stays where it is; it outlives the backward passes of what `forward` gave. Set
// `requires_grad`, type and device of parameters before.
template <class Holder>  // of a torch module, or std::shared_ptr of a module class
class DistributedDataParallel {
 public:
  DistributedDataParallel(Holder module, Communicator& comm, const DdpOptions& options = {})
      : module_(std::move(module)), parallel_(module_.get(), comm, options) {}

  template <class... Args>
  decltype(auto) forward(Args&&... args) {
    parallel_.begin_forward();
    return module_->forward(std::forward<Args>(args)...);
  }
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  // For a model that is called by another name: model.call(&NetImpl::encode, x), or a lambda that takes the module.
  template <class Function, class... Args>
  decltype(auto) call(Function&& function, Args&&... args) {
    parallel_.begin_forward();
    return std::invoke(std::forward<Function>(function), *module_, std::forward<Args>(args)...);
  }

  Holder& module() { return module_; }

  // Each once, also where layers share it: an optimizer would update it twice.
  std::vector<torch::Tensor> parameters() { return detail::distinct_parameters(*module_); }

  // For all micro-batches of a step but the last, forward and backward: gradients add up without talking to peers, and
  // the next pass outside synchronises what has added up.
  NoSync no_sync() { return parallel_.no_sync(); }

  // After the last backward pass of a step: takes part in what the peers do even if no parameter got a gradient here.
  void finish() { parallel_.finish(); }

  const DdpStats& stats() const { return parallel_.stats(); }

  // For train_step, which is a function of its own.
  Reducer& reducer() { return parallel_.reducer(); }

 private:
  Holder module_;
  detail::DataParallel parallel_;
};

}  // namespace tandem
