#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>

#include "models/deeplab/deeplab_options.h"
#include "models/deeplab/lorm.h"
#include "models/deeplab/pixel_classifier.h"
#include "models/resnet/resnet.h"

namespace tandem {

struct DeeplabOutput {
  torch::Tensor logits;   // (batch, classes, height, width), of the size of the images
  SumAndCount lorm = {};  // if it was asked for
};

// Semantic segmentation on a dilated ResNet. Parameters and buffers: backbone.* as torchvision's trunk, classifier.*,
// lorm.* (weights.h). Channels-last images and a model made so (to_channels_last) need no copies in other layouts.
class DeeplabImpl : public torch::nn::Module {
 public:
  explicit DeeplabImpl(const DeeplabOptions& options);

  // `images` (batch, 3, height, width), normalized. With `pseudo` labels (some, height, width) of the first images,
  // which need not be of their size, the LoRM loss of these too.
  DeeplabOutput forward(const torch::Tensor& images, const torch::Tensor& pseudo = {});

  const DeeplabOptions& options() const { return options_; }
  void set_recompute(bool wanted) { trunk_->set_recompute(wanted); }

 private:
  DeeplabOptions options_;
  Resnet trunk_{nullptr};
  PixelClassifier head_{nullptr};
  Lorm lorm_{nullptr};
};
TORCH_MODULE(Deeplab);

// FLOPs of a training step per square image of that side: three times those of the convolutions in a forward pass,
// without LoRM, whose number depends on the labels.
double training_flops(Deeplab& model, std::int64_t side);

}  // namespace tandem
