#pragma once

#include <tandem/batch_norm.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

namespace tandem {

// The model of make_reference.py.
class TinyModelImpl : public torch::nn::Module {
 public:
  TinyModelImpl();

  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding embed_;
  torch::nn::Linear frozen_, mix_;
  BatchNorm norm_;
  torch::nn::Linear project_;
  torch::Tensor head_;  // tied to the weight of embed_
};

TORCH_MODULE(TinyModel);

inline TinyModelImpl::TinyModelImpl()
    : embed_(register_module("embed", torch::nn::Embedding(11, 6))),
      frozen_(register_module("frozen", torch::nn::Linear(torch::nn::LinearOptions(6, 8).bias(false)))),
      mix_(register_module("mix", torch::nn::Linear(torch::nn::LinearOptions(8, 8).bias(false)))),
      norm_(register_module("norm", BatchNorm(torch::nn::BatchNormOptions(8)))),
      project_(register_module("project", torch::nn::Linear(8, 6))),
      head_(register_parameter("head", embed_->weight)) {
  frozen_->weight.set_requires_grad(false);
}

inline torch::Tensor TinyModelImpl::forward(const torch::Tensor& tokens) {
  const torch::Tensor hidden = mix_(frozen_(embed_(tokens)));
  const torch::Tensor normed = torch::tanh(norm_(hidden.transpose(1, 2))).transpose(1, 2);
  return torch::linear(project_(normed), head_);
}

}  // namespace tandem
