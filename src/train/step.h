#pragma once

#include <tandem/mixed_precision.h>
#include <tandem/train_step.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ddp/reducer.h"
#include "train/shard_sum.h"
#include "train/step_loss.h"

namespace tandem {

// While it lives, gradients are reduced as sums over the ranks, not means.
class SumGuard {
 public:
  explicit SumGuard(Reducer& reducer) : reducer_(reducer) { reducer_.set_divisor(1); }
  ~SumGuard() { reducer_.set_divisor(reducer_.comm().world().size); }
  SumGuard(const SumGuard&) = delete;
  SumGuard& operator=(const SumGuard&) = delete;

 private:
  Reducer& reducer_;
};

// Clears the gradients. While it lives, zero_grad() of the optimizer does nothing.
class GradientsKept {
 public:
  explicit GradientsKept(Optimizer& optimizer) : optimizer_(optimizer) {
    optimizer_.zero_grad();
    optimizer_.keeps_gradients_ = true;
  }
  ~GradientsKept() { optimizer_.keeps_gradients_ = false; }
  GradientsKept(const GradientsKept&) = delete;
  GradientsKept& operator=(const GradientsKept&) = delete;

 private:
  Optimizer& optimizer_;
};

struct GradientMark {
  std::size_t num_gradients = 0;
  std::int64_t version = 0;  // of the first
  bool operator==(const GradientMark&) const = default;
};

// What one backward pass computes: the gradient of a weighted sum of the groups of terms.
struct WeightedGroup {
  std::size_t group = 0;
  double factor = 1;
};
using Pass = std::vector<WeightedGroup>;

// One update of a model: `begin_batch`, the forward pass and `backward` for each micro-batch of this rank, then
// `update`. train_step and Accelerator both use it, so that the order is implemented once.
class Step {
 public:
  // `batches` are the micro-batches of this rank. Every rank has the same number, or none.
  Step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler, std::vector<BatchName> batches,
       const StepOptions& options);

  // Of the next micro-batch. Autocast is on until `backward`.
  void begin_batch();
  void backward(const Loss& given);
  bool has_all() const { return num_done_ == batches_.size(); }

  // Leaves in `.grad` the gradient of the mean over all micro-batches and ranks, so that it can be read and changed
  // before `update`. The last `backward` has called it; a rank without micro-batches calls it itself.
  void complete();

  StepResult update(double lr, double max_norm);

 private:
  void agree_on_normalizer(const Loss& loss);
  std::span<const LossTerm> terms_of_group(const Loss& loss, std::size_t group) const;
  void differentiate(const Loss& loss);
  void differentiate_at_once(const Loss& loss);
  void plan_passes(const Loss& loss);
  torch::Tensor weighted_sum(const Loss& loss, const Pass& pass) const;
  void check_unchanged() const;
  [[noreturn]] void fail_changed() const;
  Tally reduce();
  std::vector<double> group_factors(const Tally& total) const;
  std::vector<double> pass_factors(const Tally& total) const;
  void check_known(const Tally& total) const;
  void check_result(const StepResult& result) const;

  Reducer& reducer_;
  Optimizer& optimizer_;
  LossScaler& scaler_;
  StepOptions options_;
  std::vector<BatchName> batches_;
  std::int64_t passes_before_;
  std::size_t num_done_ = 0;
  StepLoss losses_;
  SumGuard sums_;
  GradientsKept kept_;
  GradientMark mark_;                // after the last backward pass
  std::optional<Tally> counted_;     // if it was needed before the backward pass
  std::optional<Tally> total_;       // once `.grad` is complete
  std::size_t num_gradients_ = 0;    // then
  torch::Tensor overflow_;           // with a loss scale: 1 if a gradient was not finite then
  std::optional<ShardSum> shards_;   // in exact mode, or if micro-batches have terms with different counts
  std::vector<std::size_t> groups_;  // the first term of each group of terms that share a count
  std::vector<KnownCount> known_;    // total counts that were known before the passes
  std::vector<Pass> passes_;         // over each micro-batch
  std::optional<NoSync> no_sync_;
  std::optional<Autocast> autocast_;
};

}  // namespace tandem
