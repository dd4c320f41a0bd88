#include <tandem/error.h>

#include <array>

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
  if (data.data == kBuiltinShapes && !(o.mask_path.empty() && o.valid_list.empty())) {
    fail(ErrorKind::Config, str("mask-path and valid-list name files, and ", data.data, " has none"), "leave them out");
  }
  if (!o.mask_path.empty()) data.mask_path = o.mask_path;
  if (!o.valid_list.empty()) data.valid_list = o.valid_list;
  const int num_shapes = shape_classes().count();
  if (data.data == kBuiltinShapes && model.classes.count() != num_shapes) {
    fail(ErrorKind::Data, str(data.data, " has ", num_shapes, " classes, and the model ", model.classes.count()),
         "evaluate it on data with the classes that it was trained on: --data FOLDER");
  }
  data.numclasses = 0;
  const SegmentDataset valid = load_valid(data, model.classes);
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
  json.emplace_back("unusable", std::ssize(result.skipped));
  json.emplace_back("iou", iou_json(result.scores(), classes.names));
  json.emplace_back("confusion", confusion_json(result.matrix));
  if (!result.skipped.empty()) {
    Json::Array skipped;
    for (const BadSample& bad : result.skipped) skipped.emplace_back(text_of(bad));
    json.emplace_back("skipped", std::move(skipped));
  }
  json.emplace_back("baselines", json_of(result.baselines(classes)));
  return str(json_text(json), '\n');
}

std::string evaluate_model(Communicator& comm, const EvaluateCommandOptions& o) {
  Segmenter model = load_trained(o, comm);
  SegmentDataset samples = load_samples(o, model);
  const std::int64_t num_samples = samples.size();
  const std::array sets = {&samples};
  const std::vector<BadSample> missing =
      leave_out_bad(sets, model.classes, check_of(comm.world()), o.loader.skip_bad,
                    [&](const std::vector<BadSample>& found) { return gather_skipped(comm, found); });
  LoaderOptions loader = o.loader;
  loader.skip_bad -= std::ssize(missing);
  RowProgress progress(o.progress, comm.world());
  EvaluationOptions loop;
  loop.on_progress = [&](std::int64_t done, std::int64_t all) { progress.show(done, all); };
  Evaluation result =
      evaluate(comm, model.net, samples, model.classes.count(),
               {.eval_batch = o.whole ? 1 : o.eval_batch, .inference = o.inference, .loader = loader}, loop);
  progress.finish();
  result.skipped.insert(result.skipped.begin(), missing.begin(), missing.end());
  check_bad_samples(result.skipped, num_samples, o.loader.skip_bad);
  if (o.json) return evaluation_json(result, model.classes);
  std::string skipped;
  for (const BadSample& bad : result.skipped) skipped += str("left out  ", text_of(bad), '\n');
  if (!skipped.empty())
    skipped += str("unusable  ", result.skipped.size(), " of ", counted(num_samples, "sample"), " left out\n");
  const double baseline = std::get<double>(result.baselines(model.classes).front().values.front().second);
  return str("model     ", model.weights, "\nimages    ", result.num_images, ", on ",
             counted(comm.world().size, "rank"), "\n", skipped, "\n",
             scores_table("class", result.scores(), model.classes.names), "baseline: all ", model.classes.names.front(),
             " has a mean IoU of ", fixed(baseline, 4), '\n');
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
