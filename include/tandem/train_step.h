#pragma once

#include <tandem/ddp.h>
#include <tandem/loss_scaler.h>
#include <tandem/optimizer.h>
#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tandem {

// The losses of a micro-batch, added up, and how many they are: samples, tokens, pixels. train_step makes them the mean
// over all micro-batches and ranks by one division, so these may differ in size.
struct LossSum {
  torch::Tensor sum;
  std::int64_t count = 0;
  std::int64_t work = 0;  // what the model read for it, by which its speed is measured; 0: no more than the count
};

struct StepOptions {
  std::int64_t step = 0;  // updates so far; with the seed it decides what dropout drops
  std::uint64_t seed = 0;
  double lr = 1e-3;
  double max_norm = 0;    // a longer gradient is made this long; 0: left alone
  bool is_exact = false;  // the same bits on 1, 2 or 4 ranks (BatchPlan says on which)
};

struct StepResult {
  double loss = 0;         // the mean over all ranks
  std::int64_t count = 0;  // of what
  std::int64_t work = 0;   // that all ranks did for it, in the unit of the losses
  double norm = 0;         // of its gradient, before clipping
  bool was_skipped =
      false;  // the scaled gradient overflowed, on all ranks alike: weights and optimizer stay as they were
};

// Which micro-batch it is.
struct BatchName {
  std::span<const std::int64_t> ids;   // of the samples that count, if they are known
  std::optional<std::int64_t> number;  // among the micro-batches of the step on all ranks, if it is known
};

namespace detail {

struct MicroBatch {
  BatchName name;
  std::function<LossSum()> loss;
};

StepResult train_step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler,
                      std::span<const MicroBatch> micro_batches, const StepOptions& options);

// From `ids`, `num_counted` and `index` of a batch, or of its `samples`, where it has them.
template <class Batch>
BatchName name_of(const Batch& batch) {
  if constexpr (requires { batch.samples; }) {
    return name_of(batch.samples);
  } else {
    BatchName name;
    if constexpr (requires { std::span<const std::int64_t>(batch.ids); }) name.ids = batch.ids;
    if constexpr (requires { std::int64_t{batch.index}; }) name.number = batch.index;
    if constexpr (requires { std::int64_t{batch.num_counted}; }) {
      name.ids = name.ids.first(std::min(name.ids.size(), static_cast<std::size_t>(batch.num_counted)));
    }
    return name;
  }
}

}  // namespace detail

// One update of the model, from the gradient of the mean loss over `batches` on all ranks. `loss_fn` gets a batch,
// calls the model and returns a LossSum; it runs under Autocast in the precision of the scaler. Every rank calls this
// with equally many batches. A loss that is not finite is an Error on every rank; it names rank, step and the samples
// of a batch that has `ids` (or `samples.ids`). So is a gradient that is not, unless the loss was scaled.
template <class Model, class Batches, class LossFn>
StepResult train_step(Model& model, Optimizer& optimizer, LossScaler& scaler, const Batches& batches, LossFn&& loss_fn,
                      const StepOptions& options) {
  std::vector<detail::MicroBatch> micro_batches;
  for (const auto& batch : batches) {
    micro_batches.push_back({detail::name_of(batch), [&loss_fn, &batch]() -> LossSum { return loss_fn(batch); }});
  }
  return detail::train_step(model.reducer(), optimizer, scaler, micro_batches, options);
}

}  // namespace tandem
