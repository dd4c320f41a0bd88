#include "recipes/segment/train_parts.h"

#include <cmath>
#include <span>

#include "base/fd.h"
#include "base/machine.h"
#include "base/text.h"
#include "image/codec.h"
#include "models/resnet/conv.h"
#include "monitor/numbers.h"
#include "recipe/optimization.h"
#include "recipes/segment/pictures.h"
#include "recipes/segment/shapes.h"

namespace tandem::segment {
namespace {

using torch::Tensor;

constexpr const char* kSamplesFile = "samples.png";
constexpr std::int64_t kNumShown = 6;
constexpr std::int64_t kEnoughImages = 16;  // for the statistics of a batch norm on one rank

// The evaluated samples of data that is built in have scribbles, too, though nothing learns from them.
Image scribble_of(const TrainOptions& options, std::int64_t index) {
  const ShapesSample shapes = make_shapes(ShapesSet::Valid, index);
  SegmentPlanes planes;
  planes.image = shapes.image;
  planes.labels = shapes.scribble;
  return crop_centre(planes, options.data.crop).labels;
}

Image samples_sheet(const Segmenter& model, const SegmentDataset& valid,
                    std::span<const RowOfSample<Tensor>> predictions, const TrainOptions& options) {
  const auto picture = [&](const Image& indices) { return coloured(indices, model.classes.palette); };
  std::vector<std::vector<Image>> rows;
  for (const auto& [id, prediction] : predictions) {
    const SegmentPlanes sample = valid.get(id, {});
    std::vector<Image>& row = rows.emplace_back();
    row.push_back(sample.image);
    if (options.data.data == kBuiltinShapes) row.push_back(picture(scribble_of(options, id)));
    row.push_back(picture(sample.labels));
    row.push_back(picture(index_image(prediction)));
  }
  return contact_sheet(rows);
}

}  // namespace

SegmentSets load_data(Accelerator& accelerator, const TrainOptions& options) {
  SegmentSets sets = load_sets(options.data);
  if (options.data.verify) {
    const int threads = std::max(1, usable_cores() / accelerator.world().local_size);
    std::vector<std::string> stems;
    for (const BadFile& file : verify_sets(sets, threads, options.loader.skip_bad)) {
      accelerator.print(str("unreadable ", file.reason));
      stems.push_back(file.stem);
    }
    accelerator.print(str("verified   every file was read; ", stems.size(), " cannot be used"));
    if (!stems.empty()) {
      sets.train = sets.train.without(stems, sets.classes);
      sets.valid = sets.valid.without(stems, sets.classes);
    }
  }
  accelerator.print(str("data       ", counted(sets.train.size(), "image"), " to train on, ", sets.valid.size(),
                        " to evaluate on, ", sets.classes.count(), " classes"));
  return sets;
}

Segmenter make_segmenter(Accelerator& accelerator, const TrainOptions& options, const Classes& classes) {
  Segmenter model{
      .net = Deeplab(network_options(options.model, classes.count())), .classes = classes, .data = options.data};
  if (!options.model.init.empty()) {
    accelerator.print(str("weights    ", load_pretrained(model.net, options.model.init)));
  }
  to_channels_last(*model.net);
  return model;
}

void choose_batch_norm(Accelerator& accelerator, torch::nn::Module& net, SyncBatchNorm wanted) {
  const BatchPlan& plan = accelerator.batch_plan();
  if (accelerator.num_processes() == 1) return;
  if (plan.is_exact) return accelerator.print("batch norm statistics of each shard, since the run is exact");
  if (wanted == SyncBatchNorm::Off || (wanted == SyncBatchNorm::Auto && plan.batch_size >= kEnoughImages)) {
    return accelerator.print("batch norm statistics of each rank alone");
  }
  convert_sync_batchnorm(net, accelerator.comm());
  accelerator.print(str("batch norm synchronized over ", accelerator.num_processes(), " ranks",
                        wanted == SyncBatchNorm::Auto
                            ? str(": ", counted(plan.batch_size, "image"), " a rank are few (--sync-bn off: not)")
                            : ""));
}

std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& net, const SgdSettings& settings) {
  ParameterGroup trunk{.parameters = {}, .weight_decay = settings.weight_decay, .lr_factor = settings.trunk_lr};
  ParameterGroup head{.parameters = {}, .weight_decay = settings.weight_decay, .lr_factor = settings.head_lr};
  for (const auto& parameter : net.named_parameters()) {
    const bool is_trunk = parameter.key().starts_with("backbone.");
    (is_trunk ? trunk : head).parameters.emplace_back(parameter.key(), parameter.value());
  }
  return {std::move(trunk), std::move(head)};
}

OptimizeOptions optimize_options(Accelerator& accelerator, const TrainOptions& options, std::int64_t steps_per_epoch) {
  OptimizeOptions optimize = options.optimize;
  optimize.schedule.warmup_steps += std::llround(options.epochs.warmup_epochs * static_cast<double>(steps_per_epoch));
  std::int64_t& eval_every = optimize.cadence.eval_every;
  if (eval_every == 0) eval_every = options.epochs.eval_epochs * steps_per_epoch;
  return fit_schedule(accelerator, optimize, steps_per_epoch, "warmup-epochs");
}

Loader<SegmentDataset, SegmentBatch> make_loader(Accelerator& accelerator, const SegmentDataset& samples,
                                                 const LoaderOptions& options) {
  return {samples, accelerator.sampler(samples.size()), batch_maker(accelerator.device()), options};
}

Evaluation evaluate_and_show(Accelerator& accelerator, Segmenter& model, const SegmentDataset& valid,
                             const TrainOptions& options) {
  Evaluation result = evaluate(accelerator.comm(), model.net, valid, model.classes.count(),
                               {.eval_batch = options.eval_batch, .loader = options.loader, .num_shown = kNumShown},
                               accelerator.evaluation());
  accelerator.log({{"val_iou", result.mean_iou()}}, "val");  // as the guide calls it
  if (accelerator.is_main_process() && !result.shown.empty()) {
    const Image sheet = samples_sheet(model, valid, result.shown, options);
    replace_file(accelerator.folder() / kSamplesFile, encode_png(sheet));
    accelerator.log_image("samples", tensor_of(sheet));
  }
  return result;
}

void print_skipped(Accelerator& accelerator, const std::vector<std::string>& skipped) {
  for (const std::string& sample : skipped) accelerator.print(str("unreadable ", sample));
}

}  // namespace tandem::segment
