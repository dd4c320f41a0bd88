#include "recipes/segment/evaluation.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "recipes/segment/batch.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

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

std::vector<BadSample> gather_skipped(Communicator& comm, const std::vector<BadSample>& skipped) {
  Json::Array mine;
  for (const BadSample& bad : skipped) mine.emplace_back(Json::Array{bad.index, bad.name, bad.reason, bad.hint});
  std::vector<BadSample> all;
  for (const std::string& text : comm.all_gather_bytes(json_text(mine))) {
    const Json theirs = parse_json(text, "a rank");
    for (const Json& json : theirs.as_array()) {
      const Json::Array& bad = json.as_array();
      const std::int64_t index = bad.at(0).as_integer();
      if (std::ranges::count(all, index, &BadSample::index) > 0) continue;
      all.push_back({index, bad.at(1).as_string(), bad.at(2).as_string(), bad.at(3).as_string()});
    }
  }
  std::ranges::sort(all, {}, &BadSample::index);
  return all;
}

SegmentScores Evaluation::scores() const {
  ConfusionCounts counts(static_cast<int>(matrix.num_classes()));
  for (int label = 0; label < counts.num_classes; ++label) {
    for (int p = 0; p < counts.num_classes; ++p) counts.at(label, p) = matrix.count(label, p);
  }
  return score_counts(counts);
}

EventFields Evaluation::fields() const {
  const SegmentScores all = scores();
  return {{"mean_iou", all.mean_iou},
          {"mean_iou_all", all.mean_iou_all},
          {"pixel_accuracy", all.pixel_accuracy},
          {"images", num_images}};
}

// As scores of a prediction that is class 0 everywhere.
std::vector<Baseline> Evaluation::baselines(const Classes& classes) const {
  ConfusionCounts counts(static_cast<int>(matrix.num_classes()));
  for (int label = 0; label < counts.num_classes; ++label) {
    for (int p = 0; p < counts.num_classes; ++p) counts.at(label, 0) += matrix.count(label, p);
  }
  const SegmentScores all = score_counts(counts);
  return {{replace_all(str("all_", classes.names.front()), " ", "_"),
           {{"mean_iou", all.mean_iou}, {"mean_iou_all", all.mean_iou_all}, {"pixel_accuracy", all.pixel_accuracy}}}};
}

}  // namespace tandem::segment
