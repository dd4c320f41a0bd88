#include <tandem/error.h>
#include <tandem/loader.h>

#include <algorithm>
#include <exception>

#include "base/machine.h"
#include "base/text.h"

namespace tandem {
namespace {

std::string sentence_of(const BadSample& bad) {
  const std::string name = bad.name.empty() ? "" : str(" (", bad.name, ")");
  return str("loader: sample ", bad.index, name, " cannot be read: ", bad.reason);
}

}  // namespace

void validate(const LoaderOptions& options) {
  if (options.workers < -1 || options.prefetch < 0 || options.skip_bad < 0) {
    fail(ErrorKind::Config,
         str("loader: workers ", options.workers, ", prefetch ", options.prefetch, ", skip-bad ", options.skip_bad,
             ": one of them is too low"),
         "workers may be -1, the others are at least 0");
  }
}

int count_workers(const LoaderOptions& options) {
  return options.workers >= 0 ? options.workers : default_workers(usable_cores(), current_world().local_size);
}

int default_workers(int cores, int local_ranks) { return std::max(0, cores / local_ranks - 1); }

namespace detail {

std::optional<std::string> complaint_of(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception without words";
  }
}

void check_sizes(std::int64_t dataset_size, std::int64_t num_samples) {
  if (dataset_size != num_samples) {
    fail(ErrorKind::Config,
         str("loader: the dataset has ", dataset_size, " samples, the sampler was made for ", num_samples),
         "give the sampler num_samples = dataset.size()");
  }
}

void skip(std::vector<BadSample>& skipped, std::vector<BadSample> bad, std::int64_t allowed, bool has_good) {
  for (BadSample& sample : bad) {
    if (std::cmp_equal(skipped.size(), allowed)) {
      fail(ErrorKind::Data,
           str(sentence_of(sample),
               allowed == 0 ? "" : str("; it is one more than the ", allowed, " that may be skipped")),
           "mend or remove it, or let a rank skip up to N such samples with --skip-bad N");
    }
    skipped.push_back(std::move(sample));
  }
  if (!has_good) {
    fail(ErrorKind::Data, str(sentence_of(skipped.back()), "; nor can any other sample of its micro-batch"),
         "check the data, or take larger micro-batches");
  }
}

}  // namespace detail
}  // namespace tandem
