#pragma once

#include <tandem/error.h>

#include <memory>
#include <thread>
#include <utility>

#include "comm/transport.h"

namespace tandem {

// The kind of fault, and the collective at which it occurs, counted from 0.
struct Fault {
  enum class Kind { None, Delay, Drop, Throw };
  Kind kind = Kind::None;
  int at = 0;
};

// A transport that fails once.
class FaultTransport : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner, Fault fault) : inner_(std::move(inner)), fault_(fault) {}

  std::string_view name() const override { return inner_->name(); }
  Work all_reduce(torch::Tensor buffer, ReduceOp op, double divisor) override {
    return run([&] { return inner_->all_reduce(buffer, op, divisor); });
  }
  Work all_gather(torch::Tensor input, torch::Tensor output) override {
    return run([&] { return inner_->all_gather(input, output); });
  }
  Work reduce_scatter(torch::Tensor input, torch::Tensor output, ReduceOp op) override {
    return run([&] { return inner_->reduce_scatter(input, output, op); });
  }
  Work broadcast(torch::Tensor buffer, int root) override {
    return run([&] { return inner_->broadcast(buffer, root); });
  }
  Work barrier() override {
    return run([&] { return inner_->barrier(); });
  }
  torch::Tensor empty(std::int64_t count, const torch::TensorOptions& options) override {
    return inner_->empty(count, options);
  }
  torch::Device device() const override { return inner_->device(); }
  std::unique_ptr<Transport> duplicate() override { return inner_->duplicate(); }
  void set_step(std::int64_t step) override { inner_->set_step(step); }
  void confirm() override { inner_->confirm(); }
  bool failed() const override { return inner_->failed(); }

 private:
  template <class Call>
  Work run(const Call& call) {
    const bool is_now = num_calls_++ == fault_.at;
    if (is_now && fault_.kind == Fault::Kind::Delay)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // poll
    if (is_now && fault_.kind == Fault::Kind::Drop) return {};
    if (is_now && fault_.kind == Fault::Kind::Throw) fail(ErrorKind::Comm, "a fault of the test", "there is none");
    return call();
  }

  std::unique_ptr<Transport> inner_;
  Fault fault_;
  int num_calls_ = 0;
};

}  // namespace tandem
