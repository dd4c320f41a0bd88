#pragma once

#include <tandem/accelerator_options.h>
#include <tandem/loader.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/deeplab/deeplab_options.h"
#include "recipe/optimize_options.h"
#include "recipes/segment/data_options.h"
#include "recipes/segment/evaluation.h"
#include "recipes/segment/losses.h"

namespace tandem::segment {

enum class Preset {
  None,
  Demo,   // built-in shapes and a network that two cores train in a minute
  Guide,  // VOC scribbles as in guide 002
};

inline std::vector<std::pair<std::string, Preset>> enum_names(Preset) {
  return {{"none", Preset::None}, {"demo", Preset::Demo}, {"guide", Preset::Guide}};
}

// The first four with the names of the guide, whose deeplabv2 is its res50_ASPP_lorm without LoRM.
enum class ModelType { Res50AsppLorm, DeeplabV3PlusLorm, DeeplabV3Plus, DeeplabV2, DeeplabV3, DilatedSum };

inline std::vector<std::pair<std::string, ModelType>> enum_names(ModelType) {
  return {{"res50_ASPP_lorm", ModelType::Res50AsppLorm}, {"deeplabv3p_lorm", ModelType::DeeplabV3PlusLorm},
          {"deeplabv3p", ModelType::DeeplabV3Plus},      {"deeplabv2", ModelType::DeeplabV2},
          {"deeplabv3", ModelType::DeeplabV3},           {"dilated_sum", ModelType::DilatedSum}};
}

struct ModelOptions {
  ModelType model_type = ModelType::Res50AsppLorm;
  ResnetOptions trunk = {};
  std::filesystem::path init = {};
};

template <class Visitor>
void visit_fields(ModelOptions& o, Visitor&& field) {
  field(
      "model-type", o.model_type,
      "network: ASPP to classes with LoRM; DeepLabV3+ with or without LoRM; deeplabv2 as in guide 002, ASPP to classes "
      "without LoRM; deeplabv3 as in torchvision; dilated_sum, DeepLabV2 of its paper");
  field("layers", o.trunk.layers, "layers of the ResNet: 18, 34, 50, 101, 152, or 14 (one block per stage)");
  field("width", o.trunk.width, "channels of the first convolution of the ResNet");
  field("stride-in", o.trunk.stride_in,
        "position of the stride in a bottleneck: first (1x1), or second (3x3, torchvision's v1.5)");
  field("output-stride", o.trunk.output_stride, "output stride: 8 or 16");
  field("multi-grid", o.trunk.multi_grid, "multiply the dilation of the last stage's blocks by 1, 2 and 4");
  field("init", o.init,
        "pretrained weights, safetensors: a ResNet or a segmentation model with torchvision's names; empty: random");
}

// How many classes the data has is known only later.
DeeplabOptions network_options(const ModelOptions& options, std::int64_t num_classes);

// SGD with weight decay on every parameter.
struct SgdSettings {
  double momentum = 0.9;
  double weight_decay = 5e-4;
  double trunk_lr = 1;
  double head_lr = 1;
};

template <class Visitor>
void visit_fields(SgdSettings& o, Visitor&& field) {
  field("momentum", o.momentum, "momentum factor");
  field("weight-decay,wdecay", o.weight_decay, "weight decay");
  field("trunk-lr", o.trunk_lr, "factor of the learning rate of the ResNet");
  field("head-lr", o.head_lr, "factor of the learning rate of the head");
}
void validate(const SgdSettings& options);

// Intervals in epochs, as in the guide.
struct EpochOptions {
  double warmup_epochs = 0;
  std::int64_t eval_epochs = 1;
  std::int64_t val_epoch = 0;
  std::int64_t chk_interval = 0;
};

template <class Visitor>
void visit_fields(EpochOptions& o, Visitor&& field) {
  field("warmup-epochs,warmup-epoch", o.warmup_epochs, "linear warm-up of the learning rate; adds to --warmup-steps");
  field("eval-epochs", o.eval_epochs,
        "epochs between evaluations, each with a checkpoint; --eval-every, in steps, overrides it; 0: at the end");
  field("val-epoch", o.val_epoch, "first epoch, counted from 0, that is evaluated");
  field("chk-interval", o.chk_interval, "epochs between further checkpoints; 0: off");
}
void validate(const EpochOptions& options);

enum class SyncBatchNorm { Auto, On, Off };

inline std::vector<std::pair<std::string, SyncBatchNorm>> enum_names(SyncBatchNorm) {
  return {{"auto", SyncBatchNorm::Auto}, {"on", SyncBatchNorm::On}, {"off", SyncBatchNorm::Off}};
}

struct TrainOptions {
  Preset preset = Preset::None;
  AcceleratorOptions accelerator = {.batch = {.batch_size = 16},
                                    .training = {.epochs = 50, .seed = 1000, .retention = {.better = Better::Higher}}};
  DataOptions data = {};
  LoaderOptions loader = {};
  ModelOptions model = {};
  LossOptions loss = {};
  SyncBatchNorm sync_bn = SyncBatchNorm::Auto;
  OptimizeOptions optimize = {.lr = 1e-3, .clip = 0};
  SgdSettings sgd = {};
  EpochOptions epochs = {};
  std::int64_t eval_batch = 8;
};

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field("preset", o.preset, "set of defaults; other flags override single ones");
  field("", o.data, "data");
  field("", o.loader, "data");
  field("", o.model, "model");
  field("sync-bn", o.sync_bn, "batch norm over all ranks; auto: if a rank has fewer than 16 images in a micro-batch");
  field("", o.loss, "loss");
  field("", o.optimize, "optimization");
  field("", o.sgd, "optimization");
  field("", o.epochs, "epochs");
  field("eval-batch", o.eval_batch, "images per batch of an evaluation");
  field("", o.accelerator, "the run");
}
void validate(const TrainOptions& options);
std::vector<GivesWay> gives_way(const TrainOptions& options);

TrainOptions preset_options(Preset preset);

}  // namespace tandem::segment
