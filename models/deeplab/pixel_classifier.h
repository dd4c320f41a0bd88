#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <vector>

#include "models/deeplab/aspp.h"
#include "models/deeplab/deeplab_options.h"
#include "models/resnet/conv.h"
#include "models/resnet/resnet.h"

namespace tandem {

// Features to logits, at the size of the features or, for DeepLabV3+, at stride 4. The ASPP is the module "0", as in
// torchvision; a DeepLabV3 head has all names of torchvision.
class PixelClassifierImpl : public torch::nn::Module {
 public:
  PixelClassifierImpl(const DeeplabOptions& options, const ResnetImpl& trunk);

  torch::Tensor forward(const ResnetFeatures& features);

 private:
  void add_v3(const DeeplabOptions& options, std::int64_t inputs);
  void add_v3_plus(const DeeplabOptions& options, const ResnetImpl& trunk);
  void add_dilated_sum(const DeeplabOptions& options, std::int64_t inputs);
  torch::Tensor forward_v3(const torch::Tensor& features);
  torch::Tensor forward_v3_plus(const ResnetFeatures& features);
  torch::Tensor forward_dilated_sum(const torch::Tensor& features);

  SegmentHead kind_;
  double dropout_;
  Aspp aspp_{nullptr};
  ConvNorm low_{nullptr}, first_{nullptr}, second_{nullptr};  // of DeepLabV3+
  Conv conv_{nullptr};                                        // of DeepLabV3
  BatchNorm norm_{nullptr};                                   // of DeepLabV3
  Conv last_{nullptr};                                        // of DeepLabV3 and V3+
  std::vector<Conv> sum_;                                     // of the sum
};
TORCH_MODULE(PixelClassifier);

}  // namespace tandem
