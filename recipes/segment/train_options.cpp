#include "recipes/segment/train_options.h"

#include <tandem/error.h>

#include "base/check_range.h"
#include "base/text.h"

namespace tandem::segment {
namespace {

// Shapes of 96 x 96 pixels and a ResNet-18 with a quarter of the channels.
TrainOptions demo_options() {
  TrainOptions options;
  options.data.data = kBuiltinShapes;
  options.data.dataset = Supervision::ScribblePseudoDsDc;
  options.data.crop = 97;
  options.data.augment = {.scale_min = 0.8, .scale_max = 1.25, .blur_share = 0};  // the shapes are small already
  options.model.trunk = {.layers = 18, .width = 16};
  options.loss = {.l_segs = 0.5, .l_pseudo = 1, .l_lorm = 0.01, .l_ds = 0.05, .l_dc = 0.05};
  options.loss.class_weights = {0.2, 1, 1, 1};      // nine pixels in ten are background
  options.accelerator.precision = Precision::Fp32;  // the network is too small for casts to pay off
  options.accelerator.batch = {.batch_size = 8, .global_batch = 16};
  options.accelerator.training.epochs = 20;
  options.accelerator.training.threads = 1;
  options.optimize.lr = 0.3;
  options.epochs = {.warmup_epochs = 1, .eval_epochs = 10};
  return options;
}

// Guide 002 on VOC 2012: 8 images on each of 2 GPUs, all terms at weight 1.
TrainOptions guide_options() {
  TrainOptions options;
  options.data.dataset = Supervision::ScribblePseudoDsDc;
  options.loss = {.l_segs = 1, .l_pseudo = 1, .l_lorm = 1, .l_ds = 1, .l_dc = 1, .label_smooth = 0.1};
  options.accelerator.batch = {.batch_size = 8, .global_batch = 16};
  options.epochs = {.warmup_epochs = 5, .eval_epochs = 1, .chk_interval = 5};
  return options;
}

}  // namespace

DeeplabOptions network_options(const ModelOptions& o, std::int64_t num_classes) {
  DeeplabOptions options{.classes = num_classes, .lorm = false, .trunk = o.trunk};
  switch (o.model_type) {
    case ModelType::Res50AsppLorm: options.lorm = true; break;
    case ModelType::DeeplabV2: break;
    case ModelType::DeeplabV3PlusLorm: options.lorm = true; [[fallthrough]];
    case ModelType::DeeplabV3Plus: options.head = SegmentHead::DeeplabV3Plus; break;
    case ModelType::DeeplabV3: options.head = SegmentHead::DeeplabV3; break;
    case ModelType::DilatedSum: options.head = SegmentHead::DilatedSum; break;
  }
  return options;
}

void validate(const SgdSettings& o) {
  check_range("momentum", o.momentum, 0, 1);
  if (o.momentum == 1) fail(ErrorKind::Config, "momentum is 1, and must be below 1", "give less, such as 0.9");
  check_range("weight-decay", o.weight_decay, 0, kMostNumber);
  check_range("trunk-lr", o.trunk_lr, 0, kMostNumber);
  check_range("head-lr", o.head_lr, 0, kMostNumber);
}

void validate(const EpochOptions& o) {
  check_range("warmup-epochs", o.warmup_epochs, 0, kMostCount);
  check_range("eval-epochs", o.eval_epochs, 0, kMostCount);
  check_range("val-epoch", o.val_epoch, 0, kMostCount);
  check_range("chk-interval", o.chk_interval, 0, kMostCount);
}

std::vector<GivesWay> gives_way(const TrainOptions&) {
  return {{.name = "lr", .to = {"init"}},  // that of a preset is for random weights
          {.name = "class-weights", .to = {"data", "classes", "numclasses"}}};
}

void validate(const TrainOptions& o) {
  check_range("eval-batch", o.eval_batch, 1, 1'000'000);
  validate(o.model.trunk);
  if (o.model.trunk.output_stride > 16) {
    fail(ErrorKind::Config, str("output-stride is ", o.model.trunk.output_stride), "use 8 or 16");
  }
  check_losses(o.loss, o.data, network_options(o.model, 2).lorm);
  if (o.accelerator.batch.shards && o.sync_bn == SyncBatchNorm::On) {
    fail(ErrorKind::Config, "sync-bn is on in exact mode, where batch norm takes its statistics per shard",
         "leave out --sync-bn, or --shards");
  }
}

TrainOptions preset_options(Preset preset) {
  if (preset == Preset::Demo) return demo_options();
  if (preset == Preset::Guide) return guide_options();
  return {};
}

}  // namespace tandem::segment
