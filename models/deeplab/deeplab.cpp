#include "models/deeplab/deeplab.h"

#include <tandem/error.h>

#include "models/deeplab/resize_map.h"

namespace tandem {

using torch::Tensor;

DeeplabImpl::DeeplabImpl(const DeeplabOptions& options) : options_(options) {
  validate(options);
  trunk_ = register_module("backbone", Resnet(options.trunk));
  head_ = register_module("classifier", PixelClassifier(options, *trunk_));
  if (options.lorm) lorm_ = register_module("lorm", Lorm(trunk_->high_channels()));
}

DeeplabOutput DeeplabImpl::forward(const Tensor& images, const Tensor& pseudo) {
  const ResnetFeatures features = trunk_(images);
  const bool align_corners = options_.head != SegmentHead::DeeplabV3;  // torchvision's are not aligned
  DeeplabOutput output{.logits = resized_like(head_(features), images, align_corners)};
  if (pseudo.defined()) {
    if (!lorm_) {
      fail(ErrorKind::Config, "deeplab: the LoRM loss of a model without LoRM", "make it with lorm = true");
    }
    output.lorm = lorm_(features.high.narrow(0, 0, pseudo.size(0)), pseudo);
  }
  return output;
}

double training_flops(Deeplab& model, std::int64_t side) {
  const torch::NoGradGuard no_grad;
  const bool was_training = model->is_training();
  model->eval();
  const Tensor weight = model->parameters().front();
  model->forward(torch::zeros({1, 3, side, side}, weight.options()));
  model->train(was_training);
  return 3 * conv_flops(*model);
}

}  // namespace tandem
