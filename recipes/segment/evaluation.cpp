#include "recipes/segment/evaluation.h"

#include <tandem/error.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "recipes/segment/batch.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

std::string percent_row(std::string name, double value, std::size_t width) {
  name.resize(width, ' ');
  return str(name, "  ", std::isnan(value) ? "none" : fixed(value, 4), '\n');
}

// The samples of a batch that are among the first `num_shown`.
void keep_shown(GatheredRows<Tensor>& shown, const SampleBatch& batch, const Tensor& predictions) {
  for (std::int64_t i = 0; i < batch.num_counted; ++i) {
    if (batch.ids[i] >= shown.num_rows()) continue;
    const Tensor row = predictions[i].to(torch::kUInt8).cpu();
    shown.add(std::span(batch.ids).subspan(i, 1), std::span(&row, 1));
  }
}

}  // namespace

Evaluation evaluate(Communicator& comm, Deeplab& net, const SegmentDataset& samples, int num_classes,
                    const EvaluateOptions& options, EvaluationOptions loop) {
  Loader loader(samples, evaluation_sampler(samples.size(), options.eval_batch, comm.world()),
                batch_maker(comm.device()), options.loader);
  ConfusionMatrix matrix(num_classes);
  GatheredRows<Tensor> shown(std::min(options.num_shown, samples.size()));
  for (const auto& [batch, ids] : tandem::evaluate(comm, loader, std::move(loop))) {
    const Tensor predictions = class_scores(net, batch.images, options.inference).argmax(1);
    const Tensor labels = batch.targets.labels.to(comm.device());
    matrix.add(labels.narrow(0, 0, ids.num_counted), predictions.narrow(0, 0, ids.num_counted), kIgnored);
    keep_shown(shown, ids, predictions);
  }
  Evaluation result{
      .matrix = matrix.reduce(comm), .skipped = gather_skipped(comm, loader.skipped()), .shown = shown.exchange(comm)};
  result.num_images = samples.size() - std::ssize(result.skipped);
  if (result.matrix.total() > 0) return result;
  fail(ErrorKind::Data, str("none of the ", samples.size(), " masks to evaluate on has a pixel with a label"),
       "check --mask-path and the label_map of --classes");
}

std::vector<std::string> gather_skipped(Communicator& comm, const std::vector<BadSample>& skipped) {
  std::string mine;
  for (const BadSample& sample : skipped) mine += str(sample.name, ": ", sample.reason, '\n');
  std::vector<std::string> all;
  for (const std::string& text : comm.all_gather_bytes(mine)) {
    for (const std::string& line : split(text, '\n')) {
      if (!line.empty()) all.push_back(line);
    }
  }
  return all;
}

EventFields Evaluation::fields() const {
  return {{"mean_iou", mean_iou()}, {"pixel_accuracy", matrix.accuracy()}, {"images", num_images}};
}

std::vector<Baseline> Evaluation::baselines() const {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(matrix.num_classes()));
  for (std::int64_t label = 0; label < matrix.num_classes(); ++label) {
    for (std::int64_t p = 0; p < matrix.num_classes(); ++p)
      labels[static_cast<std::size_t>(label)] += matrix.count(label, p);
  }
  const double accuracy = static_cast<double>(labels[0]) / static_cast<double>(matrix.total());
  const auto others = std::count_if(labels.begin() + 1, labels.end(), [](std::int64_t count) { return count > 0; });
  return {{"all_background", {{"mean_iou", accuracy / static_cast<double>(1 + others)}, {"pixel_accuracy", accuracy}}}};
}

std::string evaluation_table(const Evaluation& evaluation, const Classes& classes) {
  std::size_t width = std::string_view("pixel accuracy").size();
  for (const std::string& name : classes.names) width = std::max(width, name.size());
  std::string text = percent_row("class", NAN, width);
  text.replace(text.rfind("none"), 4, "IoU");
  const std::vector<double> ious = evaluation.matrix.iou();
  for (std::size_t i = 0; i < ious.size(); ++i) text += percent_row(classes.names[i], ious[i], width);
  text += percent_row("mean IoU", evaluation.mean_iou(), width);
  return text + percent_row("pixel accuracy", evaluation.matrix.accuracy(), width);
}

}  // namespace tandem::segment
