#pragma once

#include <tandem/communicator.h>
#include <tandem/train_step.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// Losses added up, and how many they are.
struct Tally {
  double sum = 0;
  double count = 0;
  double work = 0;
  double num_batches = 0;

  friend Tally operator+(const Tally& a, const Tally& b) {
    return {a.sum + b.sum, a.count + b.count, a.work + b.work, a.num_batches + b.num_batches};
  }
};

// The losses of one step. They are looked at when all have been computed: to read one makes the host wait for a GPU.
class StepLoss {
 public:
  StepLoss(const StepOptions& options, Communicator& comm)
      : step_(options.step), is_exact_(options.is_exact), comm_(comm) {}

  // Of the next micro-batch of this rank.
  void add(const LossSum& loss, std::span<const std::int64_t> ids) {
    losses_.push_back({loss.sum.detach(), loss.count, loss.work, {ids.begin(), ids.end()}});
  }

  // Over all micro-batches of all ranks, along the tree of exact mode. What is not finite, or counts nothing, is the
  // same Error on every rank.
  Tally total() const;

 private:
  Tally mine() const;
  std::vector<Tally> gather(const Tally& mine) const;
  [[noreturn]] void fail_not_finite() const;

  struct BatchLoss {
    torch::Tensor sum;
    std::int64_t count = 0;
    std::int64_t work = 0;
    std::vector<std::int64_t> ids;

    double value() const { return count == 0 ? 0 : sum.item<double>(); }  // the mean of nothing is not a number
  };

  std::int64_t step_;
  bool is_exact_;
  Communicator& comm_;
  std::vector<BatchLoss> losses_;
};

}  // namespace tandem
