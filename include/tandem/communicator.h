#pragma once

#include <tandem/world.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tandem {

class Store;
class Transport;

enum class ReduceOp { Sum, Min, Max };

enum class TransportKind {
  Auto,
  Solo,  // one rank: collectives do nothing
  Shm,   // shared memory, on one host
  Nccl,  // NCCL between GPUs, on one host or several
};

inline std::vector<std::pair<std::string, TransportKind>> enum_names(TransportKind) {
  return {{"auto", TransportKind::Auto},
          {"solo", TransportKind::Solo},
          {"shm", TransportKind::Shm},
          {"nccl", TransportKind::Nccl}};
}

struct CommOptions {
  TransportKind transport = TransportKind::Auto;
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
};

template <class Visitor>
void visit_fields(CommOptions& o, Visitor&& field) {
  field("transport", o.transport, "transport of the collectives");
  field("timeout", o.timeout, "timeout of a collective");
  field("join-timeout", o.join_timeout, "timeout for all ranks to join");
}
void validate(const CommOptions& options);

// Counters of this rank.
struct CommStats {
  std::int64_t collectives = 0;
  std::int64_t bytes = 0;  // of the tensors passed to them
};

// An asynchronous collective. Its tensors must not be touched until `wait` has returned. A Work that is destroyed
// without `wait` still takes part in the collective, but the result is undefined. Wait in the thread that started it,
// before the communicator is destroyed.
class [[nodiscard]] Work {
 public:
  Work() = default;  // already complete
  explicit Work(std::function<void()> rest) : rest_(std::move(rest)) {}
  Work(Work&& other) noexcept : rest_(std::exchange(other.rest_, nullptr)) {}
  Work& operator=(Work&& other) noexcept {
    rest_ = std::exchange(other.rest_, nullptr);
    return *this;
  }
  ~Work() = default;

  // As c10d's Work::wait: blocks for CPU tensors; for CUDA tensors it makes the current stream wait for the result.
  // Throws the Error of a failed collective. A second call does nothing.
  void wait() {
    if (const auto rest = std::exchange(rest_, nullptr)) rest();
  }

  // The same work with a continuation that runs at the end of `wait`.
  Work then(std::function<void()> after) && {
    return Work([first = std::exchange(rest_, nullptr), after = std::move(after)] {
      if (first) first();
      after();
    });
  }

 private:
  std::function<void()> rest_;
};

// The collectives of all ranks of the run. Every rank must call the same collectives, in the same order, with tensors
// of the same type and size; a mismatch, a lost rank or a timeout is an Error on every rank. Collectives may be called
// only from the thread that created the communicator, or from a backward pass started by it.
//
// Tensors may have any shape, be empty or non-contiguous. Types: float, double, half and bfloat16 (shm accumulates both
// in float), int, long, uint8; bool for Min and Max only. CPU tensors need shm; CUDA tensors work with shm and nccl.
class Communicator {
 public:
  // Blocks until all ranks have joined; a single rank returns at once.
  static Communicator join(const CommOptions& options = {});

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) = delete;
  ~Communicator();

  const World& world() const { return world_; }
  torch::Device device() const { return device_; }  // assigned to this rank by the launcher
  std::string transport_name() const;
  const std::string& why() const { return why_; }  // why this transport was chosen
  const CommStats& stats() const { return stats_; }

  // In place. `divisor` divides the sum before it is rounded to the type of the tensor.
  Work all_reduce(const torch::Tensor& tensor, ReduceOp op = ReduceOp::Sum, double divisor = 1);

  // `output` is the concatenation of the inputs of all ranks, in rank order.
  Work all_gather(const torch::Tensor& input, const torch::Tensor& output);

  // `input` has world-size times the elements of `output`; rank r receives the r-th part of the reduction.
  Work reduce_scatter(const torch::Tensor& input, const torch::Tensor& output, ReduceOp op = ReduceOp::Sum);

  Work broadcast(const torch::Tensor& tensor, int root = 0);

  // Returns when every rank has called it.
  void barrier();

  // The bytes of every rank, in rank order; lengths may differ.
  std::vector<std::string> all_gather_bytes(std::string_view bytes);

  // The same for tensors that differ at most in their first dimension.
  std::vector<torch::Tensor> all_gather_uneven(const torch::Tensor& tensor);

  double mean(double value);

  // Blocks until the collectives that were waited for have completed on the device; on a GPU `Work::wait` only
  // synchronizes streams. Throws if a collective has failed: results computed from it on the GPU are then invalid.
  void confirm();

  // A 1-D tensor in memory that collectives use without a copy, where the device of `options` allows it.
  torch::Tensor empty(std::int64_t count, const torch::TensorOptions& options);

  // A second communicator of the same ranks, whose collectives are ordered independently. Every rank calls it.
  Communicator duplicate();

  // The training step of the collectives that follow; ranks in different steps get an Error.
  void set_step(std::int64_t step);

 private:
  class Turn;
  friend Communicator communicator_over(const World& world, torch::Device device, std::unique_ptr<Transport> transport);

  Communicator(const World& world, torch::Device device, std::unique_ptr<Transport> transport);

  World world_;
  torch::Device device_;
  std::string why_;
  std::unique_ptr<Store> store_;  // must outlive the transport
  std::unique_ptr<Transport> transport_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::unique_ptr<std::atomic<bool>> busy_;
  CommStats stats_;
};

}  // namespace tandem
