#pragma once

#include <tandem/store.h>
#include <tandem/work.h>
#include <tandem/world.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace tandem {

class Transport;

enum class ReduceOp { Sum, Min, Max };

enum class TransportKind {
  Auto,
  Solo,  // a world of one: nothing to do
  Shm,   // shared memory of one host
  Nccl,  // CUDA tensors, on one host or several
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
  field("transport", o.transport, "how tensors travel between ranks");
  field("timeout", o.timeout, "give up on a collective after this long");
  field("join-timeout", o.join_timeout, "give up on ranks that do not come after this long");
}

// What a communicator has done so far, as seen by this rank.
struct CommStats {
  std::int64_t collectives = 0;
  std::int64_t bytes = 0;  // of the tensors that were given
};

// All ranks of the run, and what they do together. Every rank calls the same collectives, in the same order, with
// tensors of the same type and size; where one does not, every rank gets an Error that names both sides. So it does
// when a rank is lost or does not come within the time-out. Collectives come from the thread that made the
// communicator, or from a backward pass that it started.
//
// Tensors may have any shape, be empty or not contiguous. Types: float, double, half, bfloat16 (over shm both are
// summed in float), int, long, uint8; bool too, but not summed. CPU tensors travel over shm, CUDA tensors over shm or
// nccl.
class Communicator {
 public:
  // Waits for all ranks. A world of one needs nobody.
  static Communicator join(const CommOptions& options = {});

  // Over a transport that the caller made.
  Communicator(const World& world, torch::Device device, std::unique_ptr<Transport> transport);

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) = delete;
  ~Communicator();

  const World& world() const { return world_; }
  torch::Device device() const { return device_; }  // what the launcher gave to this rank
  std::string transport_name() const;
  const std::string& why() const { return why_; }  // this transport
  const CommStats& stats() const { return stats_; }

  // In place. The sum is divided by `divisor`, once, before it is rounded to the tensor's type.
  Work all_reduce(const torch::Tensor& tensor, ReduceOp op = ReduceOp::Sum, double divisor = 1);

  // `output` is as large as the inputs of all ranks, one after the other.
  Work all_gather(const torch::Tensor& input, const torch::Tensor& output);

  // `input` is as large as the outputs of all ranks; rank r gets part r.
  Work reduce_scatter(const torch::Tensor& input, const torch::Tensor& output, ReduceOp op = ReduceOp::Sum);

  Work broadcast(const torch::Tensor& tensor, int root = 0);

  // Returns when every rank has called it.
  void barrier();

  // What each rank gave, in the order of ranks; lengths may differ.
  std::vector<std::string> all_gather_bytes(std::string_view bytes);

  // The same for tensors that differ at most in their first dimension.
  std::vector<torch::Tensor> all_gather_uneven(const torch::Tensor& tensor);

  double mean(double value);

  // Blocks until all that was waited for is really there: on a GPU `Work::wait` only orders. An Error if the run has
  // failed; what a GPU computed from the last collectives is garbage then.
  void confirm();

  // A tensor in memory that collectives work on without a copy, where the device of `options` allows it.
  torch::Tensor empty(std::int64_t count, const torch::TensorOptions& options);

  // The same ranks again, with an order of collectives of its own. Every rank calls it.
  Communicator duplicate();

  // Collectives say in which step they were called; ranks that are in different steps get an Error.
  void set_step(std::int64_t step);

 private:
  class Turn;

  World world_;
  torch::Device device_;
  std::string why_;
  std::unique_ptr<Store> store_;  // outlives the transport
  std::unique_ptr<Transport> transport_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::unique_ptr<std::atomic<bool>> busy_;
  CommStats stats_;
};

}  // namespace tandem
