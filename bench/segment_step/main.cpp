// Training steps of res50_ASPP_lorm with the terms of the guide's loss, on one rank, or under a launcher on several,
// with synchronized batch norm and the same batch on each; or batches of an evaluation. Prints one JSON object.
//
//   build/bin/bench/segment_step --folder FOLDER, where segment_step_torch.py --prepare has put weights and a batch

#include <tandem/tandem.h>
#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "comm/solo/solo.h"
#include "gpt/moments.h"
#include "models/deeplab/deeplab.h"
#include "models/deeplab/weights.h"
#include "recipes/segment/losses.h"
#include "run_bench.h"
#include "train/convolutions.h"
#include "train/rank_facts.h"

namespace tandem::bench {

struct SegmentStepOptions {
  std::filesystem::path folder;
  std::string device = "cpu";
  Precision precision = Precision::Fp32;
  int warmup = 1;
  int steps = 3;
  std::int64_t micro_batches = 1;
  bool lorm = true;
  bool evaluate = false;
};

template <class Visitor>
void visit_fields(SegmentStepOptions& o, Visitor&& field) {
  field("folder", o.folder, "has model.safetensors and batch.safetensors");
  field("device", o.device, "cpu or cuda:N");
  field("precision", o.precision, "what matrices are multiplied in");
  field("warmup", o.warmup, "steps before those that are measured");
  field("steps", o.steps, "steps that are measured");
  field("micro-batches", o.micro_batches, "parts of the batch that a step goes through one after the other");
  field("lorm", o.lorm, "whether the loss has the LoRM term");
  field("evaluate", o.evaluate, "evaluate the batch instead: a forward pass, and a confusion matrix of its classes");
}

namespace {

using torch::Tensor;

constexpr double kInitScale = 1024;  // of fp16: no step overflows with it, and every one of both sides is an update

struct Batch {
  Tensor images;
  PixelTargets targets;
  std::vector<KnownCount> counts;
};

segment::LossOptions loss_options(const SegmentStepOptions& options) {
  return {.l_pseudo = 1, .l_lorm = options.lorm ? 1.0 : 0.0, .l_ds = 1, .l_dc = 1, .label_smooth = 0.1};
}

std::vector<Batch> read_batches(const SegmentStepOptions& options) {
  const NamedTensors tensors = load_safetensors(options.folder / "batch.safetensors");
  const auto parts = [&](const char* name) { return tensors.at(name).chunk(options.micro_batches); };
  const auto images = parts("images"), labels = parts("labels"), pseudo = parts("pseudo"),
             near_scribble = parts("near_scribble"), near_contour = parts("near_contour");
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const PixelTargets read{labels[i], pseudo[i], near_scribble[i], near_contour[i]};
    const auto moved = [&](const Tensor& plane) { return plane.to(options.device); };
    batches.push_back({.images = moved(images[i]).contiguous(at::MemoryFormat::ChannelsLast),
                       .targets = {moved(labels[i]), moved(pseudo[i]), moved(near_scribble[i]), moved(near_contour[i])},
                       .counts = segment::known_counts(loss_options(options), read)});
  }
  return batches;
}

Deeplab load_model(const SegmentStepOptions& options) {
  Deeplab model(DeeplabOptions{});
  load_weights(*model, options.folder / "model.safetensors");
  to_channels_last(*model);
  model->to(torch::Device(options.device));
  return model;
}

Json measure_training(const SegmentStepOptions& options, const World& world) {
  Communicator comm =
      world.size > 1 ? Communicator::join() : communicator_over(world, torch::Device(options.device), make_solo());
  Deeplab model = load_model(options);
  if (world.size > 1) convert_sync_batchnorm(*model, comm);
  DistributedDataParallel<Deeplab> ddp(model, comm);
  ParameterGroup all{.parameters = {}, .weight_decay = 5e-4};
  for (const auto& item : model->named_parameters()) all.parameters.emplace_back(item.key(), item.value());
  Sgd optimizer({all}, {.momentum = 0.9});
  LossScaler scaler(options.precision, comm.device(), {.init_scale = kInitScale});
  const segment::LossOptions terms = loss_options(options);
  const std::vector<Batch> batches = read_batches(options);
  const auto loss = [&](const Batch& batch) {
    const DeeplabOutput output = ddp(batch.images, options.lorm ? batch.targets.pseudo : Tensor());
    return segment::segment_loss(terms, output, batch.targets, batch.counts, batch.images.size(0));
  };
  Json::Array losses;
  Moments moments(comm.device());
  for (int i = 0; i < options.warmup + options.steps; ++i) {
    moments.mark();
    losses.emplace_back(train_step(ddp, optimizer, scaler, batches, loss, {.step = i, .lr = 1e-3}).loss);
  }
  moments.mark();
  const std::vector<double> ms = moments.intervals_ms(options.warmup);
  return Json::Object{{"step_ms", Json::Array(ms.begin(), ms.end())},
                      {"losses", losses},
                      {"memory_gb", static_cast<double>(highest_memory(comm.device()).count) / 1e9}};
}

Json measure_evaluation(const SegmentStepOptions& options) {
  const torch::NoGradGuard no_grad;
  Deeplab model = load_model(options);
  model->eval();
  const Batch batch = read_batches(options).front();
  const Autocast autocast(torch::Device(options.device).type(), options.precision);
  ConfusionMatrix matrix(model->options().classes);
  Moments moments{torch::Device(options.device)};
  moments.mark();
  for (int i = 0; i < options.warmup + options.steps; ++i) {
    const Tensor logits = model(batch.images).logits;
    moments.mark();
    matrix.add(batch.targets.pseudo, logits.argmax(1), 255);
    moments.mark();
  }
  const std::vector<double> ms = moments.intervals_ms(2 * options.warmup);
  Json::Array forward;
  Json::Array evaluation;
  for (std::size_t i = 0; i < ms.size(); i += 2) {
    forward.emplace_back(ms[i]);
    evaluation.emplace_back(ms[i] + ms[i + 1]);
  }
  return Json::Object{{"forward_ms", forward}, {"evaluation_ms", evaluation}};
}

Json measure(const SegmentStepOptions& options, const World& world) {
  choose_convolutions();  // as the Accelerator
  return options.evaluate ? measure_evaluation(options) : measure_training(options, world);
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::SegmentStepOptions>(
      {argv + 1, argv + argc}, "segment_step", "Times training steps of res50_ASPP_lorm.", tandem::bench::measure);
}
