#pragma once

#include <tandem/ddp.h>
#include <tandem/mixed_precision.h>
#include <tandem/optimizer.h>
#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// The loss of a micro-batch: a sum over samples (or tokens, or pixels) and their number. train_step divides the sum
// over all micro-batches and ranks by their total number once, so micro-batches may differ in size.
struct LossSum {
  torch::Tensor sum;
  std::int64_t count = 0;
  std::int64_t work = 0;  // tokens or samples that the model processed, for the throughput; 0: the count
};

// One term of a loss. It adds weight * sum / count to the loss of the step, where sum and count are totals over all
// micro-batches and ranks.
struct LossTerm {
  std::string name;
  torch::Tensor sum;
  std::optional<double> count = {};  // any real number of at least 0; none: the count of the term before it
  double weight = 1;

  // Lower bound of the total count, for counts that may be 0 in a whole step. Without it, a total count of 0 is an
  // Error unless the sum is 0. A micro-batch with a count of 0 adds its sum; only nan, the mean of no samples, adds
  // nothing.
  double min_count = 0;
};

// The count of a loss term in a micro-batch, where the data tell it before the forward pass.
struct KnownCount {
  std::string term;
  double count = 0;
};

// The loss of a micro-batch as named terms, the same ones on every rank. If terms have different counts, every rank
// must have a micro-batch. With one micro-batch per rank and step, the counts are added up over ranks before the
// backward pass. With several, or in exact mode, terms whose counts the batches know beforehand (`counts`, a vector of
// KnownCount, of the same terms on every rank) need one backward pass together, and each other count one of its own.
struct Loss {
  Loss(const LossSum& loss)  // NOLINT(google-explicit-constructor): a loss of one term is a loss
      : terms{{.name = "loss", .sum = loss.sum, .count = static_cast<double>(loss.count)}}, work(loss.work) {}
  Loss(std::vector<LossTerm> all, std::int64_t num_processed = 0) : terms(std::move(all)), work(num_processed) {}

  std::vector<LossTerm> terms;
  std::int64_t work;  // as in LossSum
};

struct StepOptions {
  std::int64_t step = 0;  // completed steps; with the seed it determines dropout
  std::uint64_t seed = 0;
  double lr = 1e-3;
  double max_norm = 0;     // gradient norm clipped to this value; 0: off
  bool is_exact = false;   // the same bits on 1, 2 or 4 ranks (BatchPlan says on which)
  std::uint64_t part = 0;  // distinguishes the random numbers of several trained parts; 0: the only one

  // Called on every rank before clipping and the update, when `.grad` holds the gradient of the mean loss over all
  // micro-batches and ranks, to read or change it. Before that `.grad` holds sums over samples, in fp16 scaled.
  std::function<void()> on_gradients = {};
};

// The settings of one update of a part.
struct UpdateOptions {
  double lr = 1e-3;
  double max_norm = 0;                      // gradient norm clipped to this value; 0: off
  std::function<void()> on_gradients = {};  // as in StepOptions
};

struct StepResult {
  double loss = 0;                                         // over all ranks
  std::vector<std::pair<std::string, double>> terms = {};  // weighted, so that they add up to the loss
  double count = 0;                                        // total count of the first term
  std::int64_t work = 0;                                   // over all ranks
  double norm = 0;                                         // of the gradient, before clipping
  bool was_skipped = false;  // the scaled gradient overflowed: no rank has updated its weights
};

// Identifies a micro-batch.
struct BatchName {
  std::span<const std::int64_t> ids;  // of the samples that count, if known
  std::optional<std::int64_t> index;  // among the micro-batches of the step on all ranks, if known
  std::span<const KnownCount> counts = {};
};

namespace detail {

struct MicroBatch {
  BatchName name;
  std::function<Loss()> loss;
};

StepResult train_step(Reducer& reducer, Optimizer& optimizer, LossScaler& scaler,
                      std::span<const MicroBatch> micro_batches, const StepOptions& options);

// From `ids`, `num_counted`, `index_in_step` and `counts` of a batch, or of its `samples` and `value`, where it has
// them.
template <class Batch>
BatchName name_of(const Batch& batch) {
  if constexpr (requires { batch.samples; }) {
    BatchName name = name_of(batch.samples);
    if constexpr (requires { batch.value; }) name.counts = name_of(batch.value).counts;
    return name;
  } else {
    BatchName name;
    if constexpr (requires { std::span<const KnownCount>(batch.counts); }) name.counts = batch.counts;
    if constexpr (requires { std::span<const std::int64_t>(batch.ids); }) name.ids = batch.ids;
    if constexpr (requires { std::int64_t{batch.index_in_step}; }) name.index = batch.index_in_step;
    if constexpr (requires { std::int64_t{batch.num_counted}; }) {
      name.ids = name.ids.first(std::min(name.ids.size(), static_cast<std::size_t>(batch.num_counted)));
    }
    return name;
  }
}

// The batches and the function outlive what it returns.
template <class Batches, class LossFn>
std::vector<MicroBatch> micro_batches(const Batches& batches, LossFn& loss_fn) {
  std::vector<MicroBatch> all;
  for (const auto& batch : batches) {
    all.push_back({name_of(batch), [&loss_fn, &batch]() -> Loss { return loss_fn(batch); }});
  }
  return all;
}

}  // namespace detail

// One update of the model, with the gradient of the mean loss over `batches` on all ranks. `loss_fn` gets a batch,
// calls the model and returns a LossSum or a Loss; it runs under Autocast in the precision of the scaler. Every rank
// calls this with the same number of batches. A loss that is not finite is an Error on every rank that names the rank,
// the step and the samples of a batch that has `ids` (or `samples.ids`). A gradient that is not finite is an Error
// too, unless the loss was scaled.
template <class Model, class Batches, class LossFn>
StepResult train_step(Model& model, Optimizer& optimizer, LossScaler& scaler, const Batches& batches, LossFn&& loss_fn,
                      const StepOptions& options) {
  return detail::train_step(model.reducer(), optimizer, scaler, detail::micro_batches(batches, loss_fn), options);
}

}  // namespace tandem
