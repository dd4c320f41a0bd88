#pragma once

#include <ATen/core/Tensor.h>
#include <tandem/sampler.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace tandem {

class Communicator;

// Metrics that add up over ranks. Each rank adds its own batches; `reduce` and `gather` are collectives, called by
// every rank after the loop (or in EvaluationOptions::after_round), and give the same result on every rank.

// A sum and its count, such as losses and tokens.
struct MetricSum {
  double sum = 0;
  double count = 0;

  double mean() const { return sum / count; }  // NaN if nothing was counted
};

// The mean over all batches, summed in the order of batches: the same bits on any number of ranks.
class MeanMetric {
 public:
  template <class Count>
  requires std::is_arithmetic_v<Count>
  void add(const SampleBatch& batch, double sum, Count count) {
    entries_.push_back({batch.index_in_epoch, sum, static_cast<double>(count)});
  }

  // A batch that was added on two ranks is an Error.
  MetricSum reduce(Communicator& comm) const;

 private:
  struct Entry {
    std::int64_t batch = 0;
    double sum = 0;
    double count = 0;
  };

  std::vector<Entry> entries_;
};

// How often each class was predicted for each label.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::int64_t num_classes);

  // Two integer tensors of the same shape, on any device. Elements whose label is `ignore_index` do not count. Classes
  // outside of 0 .. num_classes-1 are an Error.
  void add(const at::Tensor& labels, const at::Tensor& predictions, std::optional<std::int64_t> ignore_index = {});

  // The sum over all ranks.
  ConfusionMatrix reduce(Communicator& comm) const;

  std::int64_t num_classes() const { return num_classes_; }
  std::int64_t count(std::int64_t label, std::int64_t prediction) const;
  std::int64_t total() const;

  // The fraction of correct predictions (pixel accuracy for pixels). NaN if there are none.
  double accuracy() const;

  // For each class: the fraction of its labels that were predicted (recall), and intersection over union. NaN for a
  // class without labels, or without labels and predictions. The means ignore these classes.
  std::vector<double> class_accuracy() const;
  std::vector<double> iou() const;
  double mean_accuracy() const;
  double mean_iou() const;

 private:
  std::int64_t labels_of(std::int64_t label) const;
  std::int64_t predictions_of(std::int64_t prediction) const;

  std::int64_t num_classes_;
  std::vector<std::int64_t> counts_;  // by label, then by prediction
};

template <class Row>
concept IsRow = std::same_as<Row, std::string> || std::same_as<Row, at::Tensor>;

template <IsRow Row>
struct RowOfSample {
  std::int64_t id = 0;
  Row row;
};

// One row for each sample of a set, computed by any rank and gathered in the order of ids on every rank. A row is a
// std::string (text or bytes) or a tensor. Tensors may differ in shape and type from row to row, such as the boxes of
// an image, and may be empty; they are returned on the CPU, detached.
//
//   GatheredRows<std::string> summaries(dataset.size());
//   for (const auto& batch : evaluate(comm, sampler)) summaries.add(batch, summarize(batch));
//   write(summaries.gather(comm));
template <IsRow Row>
class GatheredRows {
 public:
  // For ids 0 .. num_rows-1.
  explicit GatheredRows(std::int64_t num_rows);

  // Rows that this rank computed, one for each id. Of a batch, only the first num_counted are used: the others are
  // padding.
  void add(std::span<const std::int64_t> ids, std::span<const Row> rows);
  void add(const SampleBatch& batch, std::span<const Row> rows);

  // A row that is already known, for resuming a prediction. Not a collective, but every rank calls it.
  void restore(std::int64_t id, Row row);

  // Collective. Returns the rows that all ranks have added since the last exchange, by id. An id twice is an Error.
  std::vector<RowOfSample<Row>> exchange(Communicator& comm);

  // Collective. Exchanges the remaining rows and returns all, by id. A missing id is an Error.
  std::vector<Row> gather(Communicator& comm);

  std::int64_t num_rows() const { return num_rows_; }
  std::int64_t num_known() const { return std::ssize(known_); }  // exchanged or restored
  bool is_known(std::int64_t id) const { return known_.contains(id); }

 private:
  void add_row(std::int64_t id, const Row& row);
  void learn(std::int64_t id, Row row);

  std::int64_t num_rows_;
  std::string added_;                  // on this rank since the last exchange, as bytes
  std::map<std::int64_t, Row> known_;  // on every rank
};

extern template class GatheredRows<std::string>;
extern template class GatheredRows<at::Tensor>;

}  // namespace tandem
