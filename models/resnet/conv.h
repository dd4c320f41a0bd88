#pragma once

#include <tandem/batch_norm.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <array>
#include <cstdint>

namespace tandem {

struct ConvOptions {
  std::int64_t inputs = 0;   // channels
  std::int64_t outputs = 0;  // channels
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  bool bias = false;
};

// A 2-d convolution whose padding keeps the size at stride 1; weights are drawn from N(0, 2 / (kernel^2 * outputs)),
// the bias is 0. Parameters as of torch's Conv2d.
class ConvImpl : public torch::nn::Module {
 public:
  explicit ConvImpl(const ConvOptions& options);

  torch::Tensor forward(const torch::Tensor& x);

  // Multiplications and additions of the last forward pass, per image, without those with padding.
  double num_flops() const;

  torch::Tensor weight, bias;

 private:
  bool has_centre_alone(const torch::Tensor& x) const;
  bool prefers_onednn(const torch::Tensor& x) const;

  ConvOptions options_;
  std::array<std::int64_t, 2> last_sides_ = {};  // of the input of the last forward pass
};
TORCH_MODULE(Conv);

struct ConvNormOptions {
  bool has_relu = true;
  int first_name = 0;  // of the convolution; the norm has the next number
};

// Convolution, batch norm and ReLU: the modules "0" and "1", as in torchvision's Sequential.
class ConvNormImpl : public torch::nn::Module {
 public:
  explicit ConvNormImpl(const ConvOptions& options, const ConvNormOptions& norm = {});

  torch::Tensor forward(const torch::Tensor& x);

 private:
  Conv conv_{nullptr};
  BatchNorm norm_{nullptr};
  bool has_relu_;
};
TORCH_MODULE(ConvNorm);

// The FLOPs of all convolutions in the last forward pass, per image.
double conv_flops(const torch::nn::Module& module);

// Makes the weights of convolutions channels-last, so that channels-last images stay so. To be called before an
// optimizer or DistributedDataParallel sees the parameters.
void to_channels_last(torch::nn::Module& module);

}  // namespace tandem
