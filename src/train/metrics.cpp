#include <ATen/ops/aminmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/from_blob.h>
#include <tandem/communicator.h>
#include <tandem/error.h>
#include <tandem/metrics.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace tandem {
namespace {

using at::Tensor;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(part) / static_cast<double>(whole);
}

double mean_of_numbers(const std::vector<double>& values) {
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return sum / count;
}

void check_classes(const Tensor& labels, const Tensor& predictions) {
  const auto is_whole = [](const Tensor& tensor) {
    return tensor.defined() && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  };
  if (!is_whole(labels) || !is_whole(predictions)) {
    fail(ErrorKind::Config, "confusion matrix: labels and predictions must be tensors of integers",
         "scores.argmax(1) gives the classes of scores");
  }
  if (labels.sizes() != predictions.sizes()) {
    fail(ErrorKind::Config,
         str("confusion matrix: labels of shape ", list_text(labels.sizes()), ", predictions of shape ",
             list_text(predictions.sizes())),
         "give one prediction for each label");
  }
}

// For classes of which some are out of range.
[[noreturn]] void fail_out_of_range(std::string_view what, const Tensor& classes, std::int64_t num_classes) {
  const auto [least, most] = at::aminmax(classes);
  const Tensor value = least.item<std::int64_t>() < 0 ? least : most;
  fail(ErrorKind::Data,
       str("confusion matrix: ", what, ' ', value.item<std::int64_t>(), " with ", num_classes, " classes"),
       "classes are 0 .. num_classes-1; pass the label of pixels to leave out as ignore_index");
}

}  // namespace

MetricSum MeanMetric::reduce(Communicator& comm) const {
  const std::string_view mine(reinterpret_cast<const char*>(entries_.data()), entries_.size() * sizeof(Entry));
  const std::vector<std::string> of_ranks = comm.all_gather_bytes(mine);
  std::vector<Entry> all;
  std::map<std::int64_t, std::size_t> rank_of;  // by batch
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    std::vector<Entry> theirs(of_ranks[rank].size() / sizeof(Entry));
    std::copy_n(of_ranks[rank].data(), theirs.size() * sizeof(Entry), reinterpret_cast<char*>(theirs.data()));
    for (const Entry& entry : theirs) {
      if (const auto [at, is_new] = rank_of.emplace(entry.batch, rank); at->second != rank) {
        fail(ErrorKind::Data,
             str("metric: batch ", entry.batch, " was added on rank ", at->second, " and on rank ", rank),
             "add each batch of evaluate() once, on the rank that it was given to");
      }
    }
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  std::ranges::stable_sort(all, {}, &Entry::batch);
  MetricSum total;
  for (const Entry& entry : all) {
    total.sum += entry.sum;
    total.count += entry.count;
  }
  return total;
}

ConfusionMatrix::ConfusionMatrix(std::int64_t num_classes) : num_classes_(num_classes) {
  if (num_classes < 1) {
    fail(ErrorKind::Config, str("confusion matrix: ", num_classes, " classes"), "give at least 1");
  }
  counts_.resize(num_classes * num_classes);
}

// One histogram. Its first and last rows and columns count classes that are out of range, since a look at the classes
// would first wait for the device; one more row counts labels to ignore.
void ConfusionMatrix::add(const Tensor& labels, const Tensor& predictions, std::optional<std::int64_t> ignore_index) {
  check_classes(labels, predictions);
  if (labels.numel() == 0) return;
  const auto flat = [&](const Tensor& classes) {
    return classes.detach().to(labels.device(), at::kLong).reshape({-1});
  };
  const Tensor label = flat(labels);
  const Tensor prediction = flat(predictions);
  const std::int64_t side = num_classes_ + 2;
  Tensor row = label.clamp(-1, num_classes_).add_(1);
  if (ignore_index) row.masked_fill_(label.eq(*ignore_index), side);
  const Tensor cell = row.mul_(side).add_(prediction.clamp(-1, num_classes_)).add_(1);
  const Tensor table = at::bincount(cell, {}, (side + 1) * side).cpu().narrow(0, 0, side * side).view({side, side});
  const Tensor inside = table.narrow(0, 1, num_classes_).narrow(1, 1, num_classes_).contiguous();
  const auto check = [&](std::string_view what, const Tensor& classes, int dimension) {
    const Tensor counts = table.sum(1 - dimension);
    if ((counts[0] + counts[side - 1]).item<std::int64_t>() == 0) return;
    fail_out_of_range(what, ignore_index ? classes.masked_select(label.ne(*ignore_index)) : classes, num_classes_);
  };
  check("label", label, 0);
  check("prediction", prediction, 1);
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += inside.const_data_ptr<std::int64_t>()[i];
}

ConfusionMatrix ConfusionMatrix::reduce(Communicator& comm) const {
  ConfusionMatrix all = *this;
  const Tensor counts = at::from_blob(all.counts_.data(), std::ssize(all.counts_), at::kLong);
  const Tensor sum = counts.to(comm.device());
  comm.all_reduce(sum).wait();
  comm.confirm();
  counts.copy_(sum);
  return all;
}

std::int64_t ConfusionMatrix::count(std::int64_t label, std::int64_t prediction) const {
  return counts_.at(label * num_classes_ + prediction);
}

std::int64_t ConfusionMatrix::total() const {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts_) sum += count;
  return sum;
}

std::int64_t ConfusionMatrix::labels_of(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t prediction = 0; prediction < num_classes_; ++prediction) sum += count(label, prediction);
  return sum;
}

std::int64_t ConfusionMatrix::predictions_of(std::int64_t prediction) const {
  std::int64_t sum = 0;
  for (std::int64_t label = 0; label < num_classes_; ++label) sum += count(label, prediction);
  return sum;
}

double ConfusionMatrix::accuracy() const {
  std::int64_t correct = 0;
  for (std::int64_t label = 0; label < num_classes_; ++label) correct += count(label, label);
  return ratio(correct, total());
}

std::vector<double> ConfusionMatrix::class_accuracy() const {
  std::vector<double> shares;
  for (std::int64_t label = 0; label < num_classes_; ++label) {
    shares.push_back(ratio(count(label, label), labels_of(label)));
  }
  return shares;
}

std::vector<double> ConfusionMatrix::iou() const {
  std::vector<double> shares;
  for (std::int64_t label = 0; label < num_classes_; ++label) {
    const std::int64_t both = count(label, label);
    shares.push_back(ratio(both, labels_of(label) + predictions_of(label) - both));
  }
  return shares;
}

double ConfusionMatrix::mean_accuracy() const { return mean_of_numbers(class_accuracy()); }
double ConfusionMatrix::mean_iou() const { return mean_of_numbers(iou()); }

}  // namespace tandem
