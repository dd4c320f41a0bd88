#include <tandem/error.h>

#include "base/check_range.h"
#include "base/json.h"
#include "base/text.h"
#include "monitor/event_json.h"
#include "monitor/numbers.h"
#include "recipe/row_progress.h"
#include "recipe/run_commands.h"
#include "recipe/trained_options.h"
#include "recipes/segment/commands.h"
#include "recipes/segment/evaluation.h"
#include "recipes/segment/model.h"

namespace tandem::segment {
namespace {

struct EvaluateCommandOptions : TrainedOptions {
  std::string data = {};
  std::filesystem::path mask_path = {};
  std::filesystem::path valid_list = {};
  bool whole = false;
  std::int64_t eval_batch = 8;
  InferenceOptions inference = {};
  LoaderOptions loader = {};
  ProgressOptions progress = {};
  bool json = false;
};

template <class Visitor>
void visit_fields(EvaluateCommandOptions& o, Visitor&& field) {
  field("", static_cast<TrainedOptions&>(o), "model");
  field("data", o.data, "builtin:shapes or a folder, as for `train`; none: the data that the run was evaluated on");
  field("mask-path", o.mask_path, "folder of masks below --data; none: that of the run");
  field("valid-list", o.valid_list, "file with the names of the images; none: that of the run");
  field("whole", o.whole, "whole images, one at a time, instead of the crops that training evaluates on");
  field("eval-batch", o.eval_batch, "images per batch");
  field("", o.inference, "inference");
  field("", o.loader, "data");
  field("", o.progress, "progress");
  field("json", o.json, "print the result as one JSON object");
}

void validate(const EvaluateCommandOptions& o) { check_range("eval-batch", o.eval_batch, 1, 1'000'000); }

// The evaluated samples of the run, or those that flags name.
SegmentDataset load_samples(const EvaluateCommandOptions& o, const Segmenter& model) {
  DataOptions data = model.data;
  if (!o.data.empty()) data.data = o.data;
  if (data.data.empty()) {
    fail(ErrorKind::Config, str(o.from, " does not say which data it was evaluated on"), "name it: --data FOLDER");
  }
  if (!o.mask_path.empty()) data.mask_path = o.mask_path;
  if (!o.valid_list.empty()) data.valid_list = o.valid_list;
  const int num_classes = classes_of(data).count();
  if (num_classes != model.classes.count()) {
    fail(ErrorKind::Data, str(data.data, " has ", num_classes, " classes, and the model knows ", model.classes.count()),
         "evaluate on data with the classes that it was trained on");
  }
  const SegmentDataset valid = load_valid(data);
  return o.whole ? valid.with_view({}) : valid;
}

// A row for each class of the labels, with the number of pixels that were predicted as each class.
Json::Array confusion_json(const ConfusionMatrix& matrix) {
  Json::Array rows;
  for (std::int64_t label = 0; label < matrix.num_classes(); ++label) {
    Json::Array row;
    for (std::int64_t prediction = 0; prediction < matrix.num_classes(); ++prediction) {
      row.emplace_back(matrix.count(label, prediction));
    }
    rows.emplace_back(std::move(row));
  }
  return rows;
}

std::string evaluation_json(const Evaluation& result, const Classes& classes) {
  Json::Object json = json_of(result.fields());
  Json::Object ious;
  const std::vector<double> values = result.matrix.iou();
  for (std::size_t i = 0; i < values.size(); ++i) ious.emplace_back(classes.names[i], values[i]);
  json.emplace_back("iou", std::move(ious));
  json.emplace_back("confusion", confusion_json(result.matrix));
  if (!result.skipped.empty()) json.emplace_back("skipped", Json::Array(result.skipped.begin(), result.skipped.end()));
  json.emplace_back("baselines", json_of(result.baselines()));
  return str(json_text(json), '\n');
}

std::string evaluate_model(Communicator& comm, const EvaluateCommandOptions& o) {
  Segmenter model = load_trained(o, comm);
  const SegmentDataset samples = load_samples(o, model);
  RowProgress progress(o.progress, comm.world());
  EvaluationOptions loop;
  loop.on_progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  const Evaluation result =
      evaluate(comm, model.net, samples, model.classes.count(),
               {.eval_batch = o.whole ? 1 : o.eval_batch, .inference = o.inference, .loader = o.loader}, loop);
  progress.finish();
  if (o.json) return evaluation_json(result, model.classes);
  std::string skipped;
  for (const std::string& sample : result.skipped) skipped += str("skipped   ", sample, '\n');
  const double baseline = std::get<double>(result.baselines().front().values.front().second);
  return str("model     ", model.weights, "\nimages    ", result.num_images, ", on ",
             counted(comm.world().size, "rank"), "\n", skipped, "\n", evaluation_table(result, model.classes),
             "baseline: all background has a mean IoU of ", fixed(baseline, 4), '\n');
}

}  // namespace

RecipeCommand evaluate_command() {
  return {.name = "evaluate",
          .about = "mean IoU, IoU of each class and pixel accuracy of a trained model",
          .run = worker_command<EvaluateCommandOptions>(evaluate_model),
          .examples = {"tandem segment evaluate --from runs/latest --nproc 2",
                       "tandem segment evaluate --from runs/latest --whole --scales 0.5,1,1.5 --flip --window 465"}};
}

}  // namespace tandem::segment
