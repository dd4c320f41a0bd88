#include "recipes/segment/train_parts.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
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
#include "recipes/segment/pretrained.h"
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

void add_new(std::vector<BadSample>& known, const std::vector<BadSample>& found) {
  for (const BadSample& bad : found) {
    if (std::ranges::count(known, bad.name, &BadSample::name) == 0) known.push_back(bad);
  }
}

void print_left_out(Accelerator& accelerator, std::span<const BadSample> bad) {
  for (const BadSample& sample : bad) accelerator.print(str("left out   ", text_of(sample)));
}

}  // namespace

LeftOut::LeftOut(std::vector<BadSample> before, std::int64_t num_samples, std::int64_t most)
    : known_(std::move(before)), num_before_(std::ssize(known_)), num_samples_(num_samples), most_(most) {}

void LeftOut::add_trained(Communicator& comm, const std::vector<BadSample>& skipped) {
  add_new(known_, gather_skipped(comm, skipped));
}

void LeftOut::add_evaluated(const std::vector<BadSample>& skipped) { add_new(evaluated_, skipped); }

bool LeftOut::is_too_much() const { return count() > most_; }

void LeftOut::check() const { check_bad_samples(all(), num_samples_, most_); }

std::vector<BadSample> LeftOut::all() const {
  std::vector<BadSample> all = known_;
  add_new(all, evaluated_);
  return all;
}

void LeftOut::print(Accelerator& accelerator) const {
  const std::vector<BadSample> bad = all();
  print_left_out(accelerator, std::span(bad).subspan(num_before_));
  if (bad.empty()) return;
  accelerator.print(str("unusable   ", bad.size(), " of ", counted(num_samples_, "sample"), " left out"));
}

CheckedSets load_data(Accelerator& accelerator, const TrainOptions& options) {
  SegmentSets sets = load_sets(options.data);
  const std::int64_t num_samples = sets.train.size() + sets.valid.size();
  const std::array both = {&sets.train, &sets.valid};
  const std::vector<BadSample> bad =
      leave_out_bad(both, sets.classes, check_of(accelerator.world(), options.data.verify), options.loader.skip_bad,
                    [&](const std::vector<BadSample>& found) { return gather_skipped(accelerator.comm(), found); });
  if (options.data.verify) {
    accelerator.print(str("verified   ", counted(num_samples, "sample"), " read, ", bad.size(), " unusable"));
  }
  print_left_out(accelerator, bad);
  accelerator.print(str("data       ", counted(sets.train.size(), "image"), " to train on, ", sets.valid.size(),
                        " to evaluate on, ", sets.classes.count(), " classes"));
  const std::string unused = unused_planes(options.loss, options.data);
  if (!unused.empty()) accelerator.print(str("note       read and not used, since their weights are 0: ", unused));
  return {.sets = std::move(sets), .left_out = {bad, num_samples, options.loader.skip_bad}};
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
                        wanted == SyncBatchNorm::Auto ? str(", since ", counted(plan.batch_size, "image"), " a rank ",
                                                            plan.batch_size == 1 ? "is" : "are", " fewer than ",
                                                            kEnoughImages, " (--sync-bn off to disable)")
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

namespace {

// In epochs, as it was given; fit_schedule knows steps only.
void check_warmup_epochs(Accelerator& accelerator, const TrainOptions& options, std::int64_t steps_per_epoch) {
  const TrainingOptions& training = accelerator.options().training;
  const std::int64_t all = training.epochs * steps_per_epoch;
  const std::int64_t num_steps = std::min(training.max_steps.value_or(all), all);
  const std::int64_t steps = std::llround(options.epochs.warmup_epochs * static_cast<double>(steps_per_epoch));
  if (steps <= num_steps || accelerator.place().proposes("warmup-epochs")) return;
  fail(ErrorKind::Config,
       str("warmup-epochs is ", options.epochs.warmup_epochs, ", which are ", counted(steps, "step"),
           ", and the run has ", num_steps),
       "lower --warmup-epochs, or train longer");
}

}  // namespace

OptimizeOptions optimize_options(Accelerator& accelerator, const TrainOptions& options, std::int64_t steps_per_epoch) {
  OptimizeOptions optimize = options.optimize;
  optimize.schedule.warmup_steps += std::llround(options.epochs.warmup_epochs * static_cast<double>(steps_per_epoch));
  std::int64_t& eval_every = optimize.cadence.eval_every;
  if (eval_every == 0) eval_every = options.epochs.eval_epochs * steps_per_epoch;
  check_warmup_epochs(accelerator, options, steps_per_epoch);
  return fit_schedule(accelerator, optimize, steps_per_epoch, "warmup-epochs");
}

Loader<SegmentDataset, SegmentBatch> make_loader(Accelerator& accelerator, const CheckedSets& data,
                                                 const TrainOptions& options) {
  LoaderOptions loader = options.loader;
  loader.skip_bad = data.left_out.num_allowed();
  const SegmentDataset& samples = data.sets.train;
  return {samples, accelerator.sampler(samples.size()), batch_maker(accelerator.device(), options.loss), loader};
}

Evaluation evaluate_and_show(Accelerator& accelerator, Segmenter& model, CheckedSets& data,
                             const TrainOptions& options) {
  const SegmentDataset& valid = data.sets.valid;
  LoaderOptions loader = options.loader;
  loader.skip_bad = data.left_out.num_allowed();
  Evaluation result =
      evaluate(accelerator.comm(), model.net, valid, model.classes.count(),
               {.eval_batch = options.eval_batch, .loader = loader, .num_shown = kNumShown}, accelerator.evaluation());
  data.left_out.add_evaluated(result.skipped);
  accelerator.log({{"val_iou", result.scores().mean_iou_all}}, "val");  // as the guide calls and defines it
  if (accelerator.is_main_process() && !result.shown.empty()) {
    const Image sheet = samples_sheet(model, valid, result.shown, options);
    replace_file(accelerator.folder() / kSamplesFile, encode_png(sheet));
    accelerator.log_image("samples", tensor_of(sheet));
  }
  return result;
}

}  // namespace tandem::segment
