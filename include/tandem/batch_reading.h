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

// A sample that could not be read, and what was said.
struct BadSample {
  std::int64_t index = 0;
  std::string name;  // empty: the dataset has no names
  std::string reason;

  friend bool operator==(const BadSample&, const BadSample&) = default;
};

namespace detail {

// What the exception says that `body` throws; nothing if it throws none.
std::optional<std::string> complaint_of(const std::function<void()>& body);

// One micro-batch while it is read: `read` once for each of its samples, in any order and on any threads; the last one
// makes the batch.
template <class Dataset, class Batch>
class BatchReading {
 public:
  using Sample = SampleOf<Dataset>;
  using Collate = std::function<Batch(std::vector<Sample>&&)>;

  struct Result {
    std::optional<Batch> value;  // nothing: no sample was good
    SampleBatch samples;
    std::vector<BadSample> bad;
  };

  BatchReading(const Dataset& dataset, const Collate& collate, SampleBatch wanted, std::uint64_t seed,
               std::int64_t epoch)
      : dataset_(dataset),
        collate_(collate),
        wanted_(std::move(wanted)),
        seed_(seed),
        epoch_(epoch),
        samples_(wanted_.ids.size()),
        complaints_(wanted_.ids.size()),
        num_left_(wanted_.ids.size()) {}

  std::future<Result> result() { return make_.get_future(); }

  void read(std::size_t i) {
    const std::int64_t id = wanted_.ids[i];
    complaints_[i] =
        complaint_of([&] { samples_[i].emplace(get_sample(dataset_, id, sample_seed(seed_, epoch_, id))); });
    if (--num_left_ == 0) make_();
  }

 private:
  Result make() {
    Result result{.value = {}, .samples = wanted_, .bad = {}};
    result.samples.ids.clear();
    result.samples.num_counted = 0;
    std::vector<std::int64_t>& ids = result.samples.ids;
    std::vector<Sample> good;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const std::int64_t id = wanted_.ids[i];
      if (complaints_[i]) {
        result.bad.push_back({.index = id, .name = name_of(dataset_, id), .reason = *complaints_[i]});
        continue;
      }
      ids.push_back(id);
      good.push_back(std::move(*samples_[i]));
      if (std::cmp_less(i, wanted_.num_counted)) ++result.samples.num_counted;
    }
    if (good.empty()) return result;
    for (std::size_t i = 0; good.size() < samples_.size(); ++i) {
      ids.push_back(ids[i]);
      good.push_back(good[i]);
    }
    result.value.emplace(collate_(std::move(good)));
    return result;
  }

  const Dataset& dataset_;
  const Collate& collate_;
  SampleBatch wanted_;
  std::uint64_t seed_;
  std::int64_t epoch_;
  std::vector<std::optional<Sample>> samples_;
  std::vector<std::optional<std::string>> complaints_;
  std::atomic<std::size_t> num_left_;
  std::packaged_task<Result()> make_{[this] { return make(); }};
};

}  // namespace detail
}  // namespace tandem
