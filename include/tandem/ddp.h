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

// How buffers, such as the running statistics of BatchNorm, are kept equal after each synchronized backward pass.
enum class BufferSync {
  Broadcast,  // from rank 0
  Average,    // mean over the ranks; integer buffers from rank 0
  Off,        // each rank keeps its own
};

inline std::vector<std::pair<std::string, BufferSync>> enum_names(BufferSync) {
  return {{"broadcast", BufferSync::Broadcast}, {"average", BufferSync::Average}, {"off", BufferSync::Off}};
}

// The type in which gradients are sent. 16 bits halve the traffic of float gradients and round them.
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
  field("first-bucket", o.first_bucket, "size of the first gradient bucket; small, so that communication starts early");
  field("bucket", o.bucket, "size of the other gradient buckets");
  field("buffers", o.buffers, "synchronization of buffers after each backward pass");
  field("wire", o.wire, "type in which gradients are sent");
}

struct DdpStats {
  std::int64_t passes = 0;              // synchronized backward passes
  std::int64_t buckets = 0;             // reduced so far
  std::int64_t bytes = 0;               // of gradients sent
  std::chrono::nanoseconds exposed{0};  // communication time not overlapped with the backward pass
};

// Within its scope, backward passes only accumulate gradients on this rank.
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

// The part of DistributedDataParallel that does not depend on the type of the module.
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

// Checks that every parameter and buffer has the same bits on all ranks. An Error (kind Comm) names the first tensor
// that differs and its ranks. Each rank sends 8 bytes per tensor. Every rank calls it.
void check_replicas(const torch::nn::Module& module, Communicator& comm);

// Data-parallel training of a module, as torch.nn.parallel.DistributedDataParallel. Every rank passes the same module
// (an Error names the first difference) and receives the parameters and buffers of rank 0. When `loss.backward()`
// returns, each `.grad` is the mean over the ranks, as a view into a bucket that the next pass overwrites.
//
// Each `forward` allows one backward pass. An unused parameter contributes zeros; if no rank uses it, its `.grad` is
// left unchanged. The communicator must outlive this object and must not be moved; this object must outlive the
// backward passes of its outputs. Set `requires_grad`, dtype and device of the parameters before construction.
template <class Holder>  // a module holder, or std::shared_ptr of a module class
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

  // For a method other than `forward`: model.call(&NetImpl::encode, x), or a lambda that takes the module.
  template <class Function, class... Args>
  decltype(auto) call(Function&& function, Args&&... args) {
    parallel_.begin_forward();
    return std::invoke(std::forward<Function>(function), *module_, std::forward<Args>(args)...);
  }

  Holder& module() { return module_; }

  // Without duplicates: a tied parameter appears once.
  std::vector<torch::Tensor> parameters() { return detail::distinct_parameters(*module_); }

  // Gradient accumulation: hold it for forward and backward of every micro-batch of a step but the last, whose backward
  // pass then reduces the accumulated gradients.
  NoSync no_sync() { return parallel_.no_sync(); }

  // Call after the last backward pass of a step: joins the reduction even if no parameter got a gradient on this rank.
  void finish() { parallel_.finish(); }

  const DdpStats& stats() const { return parallel_.stats(); }

  // For train_step.
  Reducer& reducer() { return parallel_.reducer(); }

 private:
  Holder module_;
  detail::DataParallel parallel_;
};

}  // namespace tandem
