#pragma once

#include <torch/types.h>

#include <vector>

#include "models/deeplab/deeplab.h"

namespace tandem::segment {

// How the classes of an image are predicted: by one pass, or by the mean softmax of several.
struct InferenceOptions {
  std::vector<double> scales = {1};
  bool flip = false;
  int window = 0;
};

template <class Visitor>
void visit_fields(InferenceOptions& o, Visitor&& field) {
  field("scales", o.scales, "sizes of the image to average over, such as 0.5,0.75,1,1.25,1.5,1.75,2");
  field("flip", o.flip, "average over the image and its mirror image");
  field("window", o.window, "sliding window size; stride 2/3 of it; 0: the whole image at once");
}
void validate(const InferenceOptions& options);

// One pass, whose scores are logits.
bool is_single_pass(const InferenceOptions& options);

// Scores (batch, classes, height, width) of RGB bytes (batch, height, width, 3), computed on the device and in the type
// of the weights. They are logits for one pass, and mean probabilities in float32 for several.
torch::Tensor class_scores(Deeplab& net, const torch::Tensor& images, const InferenceOptions& options = {});

}  // namespace tandem::segment
