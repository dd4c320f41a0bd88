#include <tandem/error.h>
#include <tandem/loader.h>
#include <tandem/random_key.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/check_range.h"
#include "base/machine.h"
#include "base/text.h"
#include "data/worker_threads.h"

namespace tandem {
namespace {

std::string sentence_of(const BadSample& bad) {
  return str("loader: cannot read sample ", bad.index, ": ", text_of(bad));
}

}  // namespace

std::string text_of(const BadSample& sample) {
  std::string_view reason = sample.reason;
  const std::string failure = str("cannot read ", sample.name, ": ");
  if (!sample.name.empty() && reason.starts_with(failure)) reason.remove_prefix(failure.size());
  const bool is_named = reason.find(sample.name) != reason.npos;  // an empty name is found, too
  return is_named ? std::string(reason) : str(sample.name, ": ", reason);
}

void validate(const LoaderOptions& options) {
  check_range("workers", options.workers, -1, 1024);
  check_range("prefetch", options.prefetch, 0, 1024);  // each is a step in memory
  check_range("skip-bad", options.skip_bad, 0, kMostCount);
}

int count_workers(const LoaderOptions& options) {
  return options.workers >= 0 ? options.workers : default_workers(usable_cores(), current_world().local_size);
}

int default_workers(int cores, int local_ranks) { return std::max(0, cores / local_ranks - 1); }

namespace detail {

void EndThreads::operator()(WorkerThreads* threads) const { delete threads; }
ThreadsOwner start_threads(int count) { return ThreadsOwner(new WorkerThreads(count)); }
void add_task(WorkerThreads& threads, std::function<void()> task) { threads.add(std::move(task)); }
void forget_waiting(WorkerThreads& threads) { threads.forget_waiting(); }

BatchFacts facts_of(const StepKey& key, const SampleBatch& samples) {
  return {.seed = random_key(key.seed, Draw::Batch, key.epoch, samples.index_in_epoch),
          .step_seed = random_key(key.seed, Draw::Step, key.epoch, key.step),
          .epoch = key.epoch,
          .step = key.step,
          .samples = samples};
}

std::optional<Complaint> complaint_of(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return Complaint{error.message(), error.hint()};
  } catch (const std::exception& error) {
    return Complaint{error.what()};
  } catch (...) {
    return Complaint{"unknown exception"};
  }
}

void collate_named(const std::function<void()>& collate, const std::function<std::vector<std::string>()>& samples) {
  const auto fail_with = [&](ErrorKind kind, const std::string& message, const std::string& hint) {
    fail(kind, str("loader: collate failed on samples ", join_some(samples(), ", "), ": ", message), hint);
  };
  constexpr const char* kHint = "check these samples: collate must accept whatever get() of the dataset returns";
  try {
    collate();
  } catch (const Error& error) {
    fail_with(error.kind(), error.message(), error.hint());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    const std::string message = error.what();
    if (message.find("can't allocate memory") != std::string::npos) throw;     // by torch
    fail_with(ErrorKind::Data, message.substr(0, message.find('\n')), kHint);  // torch adds a backtrace
  } catch (...) {
    fail_with(ErrorKind::Data, "unknown exception", kHint);
  }
}

void check_sizes(std::int64_t dataset_size, std::int64_t num_samples) {
  if (dataset_size != num_samples) {
    fail(ErrorKind::Config, str("loader: the dataset has ", dataset_size, " samples, the sampler ", num_samples),
         "give the sampler num_samples = dataset.size()");
  }
}

namespace {

[[noreturn]] void fail_skipping(const BadSample& sample, std::int64_t allowed) {
  const std::string before = allowed == 0 ? ""
                                          : str("; ", allowed, allowed == 1 ? " sample was" : " samples were",
                                                " skipped before, as many as may be");
  fail(ErrorKind::Data, str(sentence_of(sample), before),
       str(sample.hint.empty() ? "repair or remove it" : sample.hint,
           ", or skip up to N such samples with --skip-bad N"));
}

}  // namespace

void skip(std::vector<BadSample>& skipped, std::vector<BadSample> bad, std::int64_t allowed, bool has_good) {
  const std::string last = bad.empty() ? "" : sentence_of(bad.back());
  for (BadSample& sample : bad) {
    if (std::ranges::count(skipped, sample.index, &BadSample::index) > 0) continue;  // in an earlier epoch
    if (std::cmp_equal(skipped.size(), allowed)) fail_skipping(sample, allowed);
    skipped.push_back(std::move(sample));
  }
  if (!has_good) {
    fail(ErrorKind::Data, str(last, "; its micro-batch has no readable sample"),
         "check the data, or use larger micro-batches");
  }
}

}  // namespace detail
}  // namespace tandem
