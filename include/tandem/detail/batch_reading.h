#pragma once

#include <tandem/dataset.h>
#include <tandem/sampler.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// A sample whose `get` threw an exception.
struct BadSample {
  std::int64_t index = 0;
  std::string name;  // empty if the dataset has no names
  std::string reason;
  std::string hint = {};

  friend bool operator==(const BadSample&, const BadSample&) = default;
};

// The name, once, and the reason: "images/3.jpg: No such file or directory".
std::string text_of(const BadSample& sample);

namespace detail {

struct Complaint {
  std::string reason;
  std::string hint = {};
};

// The message of the exception that `body` throws, if it throws one, and the hint of an Error.
std::optional<Complaint> complaint_of(const std::function<void()>& body);

// What `collate` throws, it throws as an Error that names the samples too. Not enough memory stays as it is.
void collate_named(const std::function<void()>& collate, const std::function<std::vector<std::string>()>& samples);

// The step that a batch belongs to.
struct StepKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // in its epoch
};
BatchFacts facts_of(const StepKey& key, const SampleBatch& samples);

// One batch while it is loaded: `read` is called once for each of its samples, in any order and on any thread; the last
// call makes the batch.
template <class Dataset, class Batch>
class BatchReading {
 public:
  using Sample = SampleOf<Dataset>;
  using Collate = std::function<Batch(std::vector<Sample>&&, const BatchFacts&)>;

  struct Result {
    std::optional<Batch> value;  // nothing if no sample was good
    SampleBatch samples;
    std::vector<BadSample> bad;
  };

  // `is_filled`: good samples are repeated in place of bad ones.
  BatchReading(const Dataset& dataset, const Collate& collate, const StepKey& key, SampleBatch wanted, bool is_filled)
      : dataset_(dataset),
        collate_(collate),
        key_(key),
        wanted_(std::move(wanted)),
        is_filled_(is_filled),
        samples_(wanted_.ids.size()),
        complaints_(wanted_.ids.size()),
        num_left_(wanted_.ids.size()) {}

  std::future<Result> result() { return make_.get_future(); }

  void read(std::size_t i) {
    const std::int64_t id = wanted_.ids[i];
    const SampleFacts facts{.seed = sample_seed(key_.seed, key_.epoch, id), .epoch = key_.epoch};
    complaints_[i] = complaint_of([&] { samples_[i].emplace(get_sample(dataset_, id, facts)); });
    if (--num_left_ == 0) make_();
  }

 private:
  Result make() {
    Result result{.value = {}, .samples = wanted_, .bad = {}};
    std::vector<std::int64_t>& ids = result.samples.ids;
    ids.clear();
    result.samples.num_counted = 0;
    std::vector<Sample> good;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const std::int64_t id = wanted_.ids[i];
      if (complaints_[i]) {
        const auto& [reason, hint] = *complaints_[i];
        result.bad.push_back({.index = id, .name = name_of(dataset_, id), .reason = reason, .hint = hint});
        continue;
      }
      ids.push_back(id);
      good.push_back(std::move(*samples_[i]));
      if (std::cmp_less(i, wanted_.num_counted)) ++result.samples.num_counted;
    }
    if (good.empty()) return result;
    for (std::size_t i = 0; is_filled_ && good.size() < samples_.size(); ++i) {
      ids.push_back(ids[i]);
      good.push_back(good[i]);
    }
    collate_named([&] { result.value.emplace(collate_(std::move(good), facts_of(key_, result.samples))); },
                  [&] { return names_of(ids); });
    return result;
  }

  // "3 (images/3.jpg)"
  std::vector<std::string> names_of(const std::vector<std::int64_t>& ids) const {
    std::vector<std::string> names;
    for (const std::int64_t id : ids) {
      const std::string name = name_of(dataset_, id);
      names.push_back(std::to_string(id) + (name.empty() ? "" : " (" + name + ")"));
    }
    return names;
  }

  const Dataset& dataset_;
  const Collate& collate_;
  StepKey key_;
  SampleBatch wanted_;
  bool is_filled_;
  std::vector<std::optional<Sample>> samples_;
  std::vector<std::optional<Complaint>> complaints_;
  std::atomic<std::size_t> num_left_;
  std::packaged_task<Result()> make_{[this] { return make(); }};
};

}  // namespace detail
}  // namespace tandem
