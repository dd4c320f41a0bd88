#pragma once

#include <tandem/dataset.h>
#include <tandem/detail/batch_reading.h>
#include <tandem/sampler.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
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
  field("workers", o.workers, "data loading threads per rank; 0: the main thread; -1: by the number of cores");
  field("prefetch", o.prefetch, "steps to load in advance");
  field("skip-bad", o.skip_bad, "number of different unreadable samples that a rank may skip");
}

void validate(const LoaderOptions& options);

// Data loading threads of this rank. By default, its share of the usable cores minus one for the main thread.
int count_workers(const LoaderOptions& options);
int default_workers(int cores, int local_ranks);

template <class Batch>
struct LoadedBatch {
  Batch value;
  SampleBatch samples;
};

class WorkerThreads;

namespace detail {

struct EndThreads {
  void operator()(WorkerThreads* threads) const;
};
using ThreadsOwner = std::unique_ptr<WorkerThreads, EndThreads>;
ThreadsOwner start_threads(int count);
void add_task(WorkerThreads& threads, std::function<void()> task);
void forget_waiting(WorkerThreads& threads);

void check_sizes(std::int64_t dataset_size, std::int64_t num_samples);

// Adds those of `bad` that are new to those skipped before; more than `allowed`, or a batch without a good sample, is
// an Error.
void skip(std::vector<BadSample>& skipped, std::vector<BadSample> bad, std::int64_t allowed, bool has_good);

}  // namespace detail

// Loads the samples that a Sampler names and makes batches of them, in advance and on worker threads. What it gives
// does not depend on their number. Loading begins with the first `next`; the dataset must outlive the loader.
//
// A sample whose `get` throws is an Error of kind Data, thrown by the `next` whose step needs it. With `skip_bad` it is
// left out instead: the good samples of its batch keep their order, and the batch is filled up by repeating them from
// the first on, which num_counted does not count. With Tail::Short, as in an evaluation, the batch is shorter instead,
// or left out. What `collate` throws is an Error that names the samples of the batch.
template <IsDataset Dataset, class Batch>
class Loader {
 public:
  // `collate(std::vector<Sample>&&)` or `collate(std::vector<Sample>&&, const BatchFacts&)` makes a batch of samples,
  // on any of the threads; pin memory there too.
  template <class Collate>
  Loader(const Dataset& dataset, Sampler sampler, Collate collate, const LoaderOptions& options = {})
      : dataset_(dataset),
        collate_([collate = std::move(collate)](std::vector<Sample>&& samples, const BatchFacts& facts) mutable {
          return detail::collate_samples(collate, std::move(samples), facts);
        }),
        skip_bad_(options.skip_bad),
        given_(sampler.state()),
        epoch_(given_.epoch),
        sampler_(std::move(sampler)) {
    validate(options);
    detail::check_sizes(dataset.size(), sampler_.options().num_samples);
    const int workers = count_workers(options);
    num_ahead_ = workers == 0 ? 0 : options.prefetch;
    threads_ = detail::start_threads(workers);
  }
  template <class Collate>
  Loader(const Dataset&&, Sampler, Collate, const LoaderOptions& = {}) = delete;  // a temporary would not outlive it
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The micro-batches of the next step that belong to this rank. After an exception it continues with the step after.
  std::vector<LoadedBatch<Batch>> next() {
    while (may_read_ahead()) begin_step();
    Step step = std::move(steps_.front());
    steps_.pop_front();
    std::vector<LoadedBatch<Batch>> batches;
    for (std::future<Result>& future : step.results) {
      Result result = future.get();
      detail::skip(skipped_, std::move(result.bad), skip_bad_, result.value || options().tail == Tail::Short);
      if (result.value) batches.push_back({std::move(*result.value), std::move(result.samples)});
    }
    given_ = step.end;
    epoch_ = step.epoch;
    is_epoch_end_ = step.ends_epoch();
    return batches;
  }

  const SamplerOptions& options() const { return sampler_.options(); }
  const Shard& shard() const { return sampler_.shard(); }
  std::int64_t num_samples() const { return sampler_.num_samples(); }
  std::int64_t steps_per_epoch() const { return sampler_.steps_per_epoch(); }
  std::string content_key() const { return detail::content_key_of(dataset_); }  // empty: the dataset has none

  // Of the step that `next` gave last; before the first, the epoch that begins or resumes.
  std::int64_t epoch() const { return epoch_; }
  bool is_epoch_end() const { return is_epoch_end_; }

  // Where `next` continues, whatever was read in advance. `set_state` is as that of a Sampler.
  const SamplerState& state() const { return given_; }
  void set_state(const SamplerState& state) {
    sampler_.set_state(state);
    detail::forget_waiting(*threads_);
    steps_.clear();
    given_ = sampler_.state();
    epoch_ = given_.epoch;
    is_epoch_end_ = false;
  }

  // The samples that were skipped so far, each once, in the order of steps.
  const std::vector<BadSample>& skipped() const { return skipped_; }

 private:
  using Sample = detail::SampleOf<Dataset>;
  using Reading = detail::BatchReading<Dataset, Batch>;
  using Result = typename Reading::Result;

  struct Step {
    std::vector<std::future<Result>> results;
    std::int64_t epoch = 0;
    SamplerState end;  // after this step
    bool ends_epoch() const { return end.epoch != epoch; }
  };

  // With Tail::Short, which is for evaluation, not beyond the epoch: it will be rewound.
  bool may_read_ahead() const {
    const bool is_rewound = sampler_.options().tail == Tail::Short && !steps_.empty() && steps_.back().ends_epoch();
    return steps_.size() <= num_ahead_ && !is_rewound;
  }

  std::int64_t samples_per_step() const { return options().batch_size * options().batches_per_step; }

  void begin_step() {
    const SamplerState begin = sampler_.state();
    const detail::StepKey key{.seed = begin.seed, .epoch = begin.epoch, .step = begin.cursor / samples_per_step()};
    Step step{.results = {}, .epoch = begin.epoch, .end = {}};
    for (SampleBatch& wanted : sampler_.next()) {
      const std::size_t size = wanted.ids.size();
      // Shared, since the tasks of a batch end in any order, or never begin.
      const auto reading =
          std::make_shared<Reading>(dataset_, collate_, key, std::move(wanted), options().tail != Tail::Short);
      step.results.push_back(reading->result());
      for (std::size_t i = 0; i < size; ++i) detail::add_task(*threads_, [reading, i] { reading->read(i); });
    }
    step.end = sampler_.state();
    steps_.push_back(std::move(step));
  }

  const Dataset& dataset_;
  typename Reading::Collate collate_;
  std::int64_t skip_bad_;
  SamplerState given_;
  std::int64_t epoch_;
  bool is_epoch_end_ = false;
  Sampler sampler_;
  std::size_t num_ahead_ = 0;
  std::deque<Step> steps_;
  std::vector<BadSample> skipped_;
  detail::ThreadsOwner threads_;  // last, so that no thread outlives what it reads
};

template <class Dataset, class Collate>
Loader(const Dataset&, Sampler, Collate, const LoaderOptions& = {})
    -> Loader<Dataset, detail::BatchOf<Collate, detail::SampleOf<Dataset>>>;

}  // namespace tandem
