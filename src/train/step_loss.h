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
  double num_batches = 0;

  friend Tally operator+(const Tally& a, const Tally& b) {
    return {a.sum + b.sum, a.count + b.count, a.num_batches + b.num_batches};
  }
};

// The losses of one step. They are looked at when all have been computed: to read one makes the host wait for a GPU.
class StepLoss {
 public:
  StepLoss(const StepOptions& options, std::span<const detail::MicroBatch> micro_batches, Communicator& comm)
      : step_(options.step), is_exact_(options.is_exact), micro_batches_(micro_batches), comm_(comm) {}

  // Of the next micro-batch of this rank.
  void add(const LossSum& loss) { losses_.push_back({loss.sum.detach(), loss.count}); }

  // Over all micro-batches of all ranks, along the tree of exact mode. What is not finite, or counts nothing, is the
  // same Error on every rank.
  Tally total() const;

 private:
  Tally mine() const;
  std::vector<Tally> gather(const Tally& mine) const;
  [[noreturn]] void fail_not_finite() const;

  std::int64_t step_;
  bool is_exact_;
  std::span<const detail::MicroBatch> micro_batches_;
  Communicator& comm_;
  std::vector<LossSum> losses_;
};

}  // namespace tandem
