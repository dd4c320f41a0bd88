#pragma once

#include <torch/types.h>

#include "models/deeplab/sum_and_count.h"

namespace tandem {

// Planes (batch, height, width) of uint8 or int64; any of them may be undefined.
struct PixelTargets {
  torch::Tensor labels = {};         // scribbles or full masks; 255: none
  torch::Tensor pseudo = {};         // pseudo labels; 255: none
  torch::Tensor near_scribble = {};  // the weight of the entropy, 0 to 255 for 0 to 1
  torch::Tensor near_contour = {};
};

struct PixelLossOptions {
  double label_smoothing = 0;        // of the pseudo labels, as in torch's cross_entropy
  torch::Tensor class_weights = {};  // (classes); undefined: all 1
  double mined_fraction = 1;         // of the labelled pixels, those with the highest cross-entropy; 1: all
  bool dice = false;                 // of the labels
};

// The sums over pixels that a loss divides by the counts.
struct PixelLosses {
  SumAndCount scribble =
      {};  // cross-entropy; count: pixels with a label that are not mined away, each with its class weight
  SumAndCount pseudo = {};     // the same for the pseudo labels
  SumAndCount entropy_s = {};  // -d sum_c P_c log P_c; count: pixels with d > 0, also where P is 1
  SumAndCount entropy_c = {};
  SumAndCount dice = {};  // 1 - 2 |P T| / (|P| + |T|) of each class that is present; count: these classes
};

// The losses of `logits` (batch, classes, height, width), in float, or in double if the logits are; terms without a
// target are undefined. One pass: the terms share one log-softmax, which is computed again in the backward pass, some
// images at a time (but for Dice). With mining, pixels that are as hard as the last one that is kept are kept too.
// Nothing is changed in place. Double backward is an Error.
PixelLosses pixel_losses(const torch::Tensor& logits, const PixelTargets& targets,
                         const PixelLossOptions& options = {});

}  // namespace tandem
