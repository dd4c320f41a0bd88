#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/deeplab/deeplab.h"

namespace tandem {

// Weights by the names of torchvision, which are ours: backbone.* is the trunk (as in its segmentation models; the
// classifiers of torchvision and timm have the same names without the prefix), classifier.0.* the ASPP, and a DeepLabV3
// head is torchvision's. Heads that torchvision does not have: classifier.low, first, second and last of DeepLabV3+,
// classifier.convs of DeepLabV2; lorm.* is ours too. Reading and writing files is up to the caller.

struct HeadOfFile {
  SegmentHead kind = SegmentHead::AsppToClasses;
  std::int64_t classes = 0;
};

struct PretrainedWeights {
  std::map<std::string, torch::Tensor> weights;  // by the names of the model, for load_weights
  std::vector<std::string> left_out;             // tensors of the file that the model does not take
  std::vector<std::string> missing;              // tensors of the model that the file does not have, but for counters
  std::optional<HeadOfFile> head = {};           // nothing: it has a ResNet alone
};

// What a model takes of the tensors of a file: those of torchvision's or timm's ResNet without its classifier `fc`, of
// torchvision's segmentation models without `aux_classifier`, or of our own; with or without the prefix `module.`. A
// head of another kind or with another number of classes, where it differs, is left out. A trunk that is not complete,
// or of another depth or width, is an Error that names `where`, the file; its hint names the flags that fit.
PretrainedWeights pretrained_weights(const Deeplab& model, const std::map<std::string, torch::Tensor>& tensors,
                                     std::string_view where);

// All parameters and buffers but those of LoRM, which only training needs; they share the model's memory.
std::map<std::string, torch::Tensor> torchvision_weights(const Deeplab& model);

}  // namespace tandem
