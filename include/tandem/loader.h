#pragma once

#include <tandem/batch_reading.h>
#include <tandem/sampler.h>
#include <tandem/worker_threads.h>

#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tandem {

struct LoaderOptions {
  int workers = -1;
  int prefetch = 2;
  std::int64_t skip_bad = 0;
};

template <class Visitor>
void visit_fields(LoaderOptions& o, Visitor&& field) {
  field("workers", o.workers, "threads of a rank that read samples; 0: it reads them itself; -1: as cores allow");
  field("prefetch", o.prefetch, "steps that threads read ahead");
  field("skip-bad", o.skip_bad, "samples of a rank that may be left out because they cannot be read");
}

void validate(const LoaderOptions& options);

// The threads that a rank gets: without a number, one for each usable core of its share but the one that computes.
int count_workers(const LoaderOptions& options);
int default_workers(int cores, int local_ranks);

template <class Batch>
struct LoadedBatch {
  Batch value;
  SampleBatch samples;
};

namespace detail {

void check_sizes(std::int64_t dataset_size, std::int64_t num_samples);

// Adds `bad` to those skipped before; more than `allowed`, or a micro-batch without a good sample, is an Error.
void skip(std::vector<BadSample>& skipped, std::vector<BadSample> bad, std::int64_t allowed, bool has_good);

}  // namespace detail

// Reads the samples that a Sampler names and makes batches of them, ahead of the training and on threads of its own.
// What it gives does not depend on their number. Reading begins with the first `next`; the dataset outlives the loader.
//
// A sample whose `get` throws is an Error of kind Data, thrown by the `next` whose step needs it. With `skip_bad` it is
// left out instead: the good samples of its micro-batch keep their order, and the batch is filled up by repeating them
// from its first on, not counted in num_counted.
template <IsDataset Dataset, class Batch>
class Loader {
 public:
  using Collate = typename detail::BatchReading<Dataset, Batch>::Collate;

  // `collate` makes a batch of samples, on any of the threads; what pins its memory belongs there too.
  Loader(const Dataset& dataset, Sampler sampler, Collate collate, const LoaderOptions& options = {})
      : dataset_(dataset),
        collate_(std::move(collate)),
        skip_bad_(options.skip_bad),
        given_(sampler.state()),
        sampler_(std::move(sampler)) {
    validate(options);
    detail::check_sizes(dataset.size(), sampler_.options().num_samples);
    const int workers = count_workers(options);
    num_ahead_ = workers == 0 ? 0 : options.prefetch;
    threads_.emplace(workers);
  }

  // The micro-batches of the next step that belong to this rank. After an exception it goes on with the step after.
  std::vector<LoadedBatch<Batch>> next() {
    while (steps_.size() <= num_ahead_) begin_step();
    Step step = std::move(steps_.front());
    steps_.pop_front();
    std::vector<LoadedBatch<Batch>> batches;
    for (std::future<Result>& future : step.results) {
      Result result = future.get();
      detail::skip(skipped_, std::move(result.bad), skip_bad_, result.value.has_value());
      batches.push_back({std::move(*result.value), std::move(result.samples)});
    }
    given_ = step.end;
    return batches;
  }

  const SamplerOptions& options() const { return sampler_.options(); }
  const Shard& shard() const { return sampler_.shard(); }
  std::int64_t num_samples() const { return sampler_.num_samples(); }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  std::int64_t epoch() const { return given_.epoch; }

  // What `next` has given, whatever was read ahead. `set_state` is as that of a Sampler.
  const SamplerState& state() const { return given_; }
  void set_state(const SamplerState& state) {
    sampler_.set_state(state);
    threads_->forget_waiting();
    steps_.clear();
    given_ = state;
  }

  // The samples that were left out so far, in the order of steps.
  const std::vector<BadSample>& skipped() const { return skipped_; }

 private:
  using Reading = detail::BatchReading<Dataset, Batch>;
  using Result = typename Reading::Result;

  struct Step {
    std::vector<std::future<Result>> results;
    SamplerState end;
  };

  void begin_step() {
    const SamplerState begin = sampler_.state();
    Step step;
    for (SampleBatch& wanted : sampler_.next()) {
      const std::size_t size = wanted.ids.size();
      // Shared, since the tasks of a batch end in any order, or are forgotten.
      const auto reading = std::make_shared<Reading>(dataset_, collate_, std::move(wanted), begin.seed, begin.epoch);
      step.results.push_back(reading->result());
      for (std::size_t i = 0; i < size; ++i) threads_->add([reading, i] { reading->read(i); });
    }
    step.end = sampler_.state();
    steps_.push_back(std::move(step));
  }

  const Dataset& dataset_;
  Collate collate_;
  std::int64_t skip_bad_;
  SamplerState given_;
  Sampler sampler_;
  std::size_t num_ahead_ = 0;
  std::deque<Step> steps_;
  std::vector<BadSample> skipped_;
  std::optional<WorkerThreads> threads_;  // last, so that no thread outlives what it reads
};

template <class Dataset, class Collate>
Loader(const Dataset&, Sampler, Collate, const LoaderOptions& = {})
    -> Loader<Dataset, std::invoke_result_t<Collate, std::vector<detail::SampleOf<Dataset>>&&>>;

}  // namespace tandem
