#pragma once

#include <c10/core/GradMode.h>
#include <tandem/detail/loop.h>
#include <tandem/sampler.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace tandem {

class Communicator;

struct EvaluationOptions {
  // Called by every rank after each round, in which each rank evaluates one batch; in the last round some ranks may
  // have none, and call it nevertheless. So collectives belong here (GatheredRows::exchange), never in the loop body.
  std::function<void()> after_round = {};

  // Called on rank 0 after each round, with the number of samples evaluated so far on all ranks and of the whole set.
  std::function<void(std::int64_t done, std::int64_t all)> on_progress = {};

  // Released when the loop is left: eval mode, autocast, averaged weights.
  std::shared_ptr<void> guard = {};
};

namespace detail {

// The rounds of an evaluation, whatever the type of its batches.
class EvaluationRounds {
 public:
  EvaluationRounds(const Communicator& comm, const SamplerOptions& samples, const Shard& shard, std::int64_t num_rounds,
                   EvaluationOptions options);

  void begin() { round_ = 0; }
  bool has_next() const { return round_ < num_rounds_; }
  void end_round();
  void call_after_round() const;

 private:
  EvaluationOptions options_;
  c10::NoGradGuard no_grad_;  // after the options, so that it ends before their guard does
  bool is_main_;
  std::int64_t num_samples_;
  std::int64_t samples_per_round_;
  std::int64_t num_rounds_;
  std::int64_t round_ = 0;
};

}  // namespace detail

// The result of `evaluate`, for a range-based for loop. Gradients are off until it is destroyed.
template <class Samples>
class EvaluationBatches {
 public:
  using Round = decltype(std::declval<Samples&>().next());
  using Batch = typename Round::value_type;

  EvaluationBatches(const Communicator& comm, Samples& samples, EvaluationOptions options)
      : samples_(samples),
        rounds_(comm, samples.options(), samples.shard(), samples.steps_per_epoch(), std::move(options)) {}
  EvaluationBatches(const EvaluationBatches&) = delete;
  EvaluationBatches& operator=(const EvaluationBatches&) = delete;

  // If the loop was left in mid-round by `break` or `return`, calls after_round, since ranks without a batch in this
  // round call it too. Not after an exception.
  ~EvaluationBatches() noexcept(false) {
    rewind();
    if (is_in_round() && std::uncaught_exceptions() == num_exceptions_) rounds_.call_after_round();
  }

  detail::LoopIterator<EvaluationBatches> begin() {
    rewind();
    rounds_.begin();
    read_round();
    return detail::LoopIterator(*this);
  }
  detail::LoopEnd end() const { return {}; }

 private:
  friend class detail::LoopIterator<EvaluationBatches>;
  const Batch& current() const { return round_[index_]; }
  bool is_over() const { return !is_in_round(); }
  bool is_in_round() const { return index_ < round_.size(); }
  void rewind() { samples_.set_state({.seed = samples_.state().seed, .epoch = 0, .cursor = 0}); }

  void read_round() {
    round_.clear();
    index_ = 0;
    while (round_.empty() && rounds_.has_next()) {
      round_ = samples_.next();
      if (round_.empty()) rounds_.end_round();
    }
  }

  void advance() {
    if (++index_ < round_.size()) return;
    rounds_.end_round();
    read_round();
  }

  Samples& samples_;
  detail::EvaluationRounds rounds_;
  Round round_;
  std::size_t index_ = 0;
  int num_exceptions_ = std::uncaught_exceptions();
};

// This rank's batches of one epoch of a Sampler or Loader (best made with evaluation_sampler): over all ranks every
// sample once, the last batch short.
//
//   MeanMetric loss;
//   for (const auto& [batch, samples] : evaluate(comm, loader)) {
//     const auto [sum, count] = loss_of(model, batch);
//     loss.add(samples, sum.item<double>(), count);
//   }
//   const double mean = loss.reduce(comm).mean();
//
// The position of `samples` does not matter; afterwards it is at the beginning of epoch 0. Batch k of the set
// (SampleBatch::index_in_epoch) has the same samples on any number of ranks. A rank may have one batch less than
// another, or none: the loop body must not call collectives, options.after_round may. All ranks may leave the loop
// early, in the same round. A set of 0 samples has no batches.
template <class Samples>
[[nodiscard]] EvaluationBatches<Samples> evaluate(const Communicator& comm, Samples& samples,
                                                  EvaluationOptions options = {}) {
  return EvaluationBatches<Samples>(comm, samples, std::move(options));
}

}  // namespace tandem
