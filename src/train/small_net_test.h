#pragma once

#include <tandem/batch_norm.h>
#include <tandem/ddp.h>
#include <tandem/sampler.h>
#include <tandem/train_step.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace tandem {

// Dropout, batch norm, a layer that is used twice, one that some micro-batches do not use, and a buffer that every
// forward pass changes and uses.
struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    in = register_module("in", torch::nn::Linear(4, 16));
    norm = register_module("norm", BatchNorm(16));
    middle = register_module("middle", torch::nn::Linear(16, 16));
    rare = register_module("rare", torch::nn::Linear(16, 16));
    out = register_module("out", torch::nn::Linear(16, 1));
    passes = register_buffer("passes", torch::zeros({1}));
  }
  torch::Tensor forward(const torch::Tensor& x, bool is_rare) {
    passes += 1;
    torch::Tensor hidden = torch::dropout(torch::relu(norm(in(x))), 0.3, is_training());
    hidden = middle(torch::tanh(middle(hidden)));
    if (is_rare) hidden = hidden + rare(hidden);
    return out(hidden * (1 + 0.01 * passes)).squeeze(1);
  }

  torch::nn::Linear in = nullptr, middle = nullptr, rare = nullptr, out = nullptr;
  BatchNorm norm = nullptr;
  torch::Tensor passes;
};
TORCH_MODULE(SmallNet);
using SmallModel = DistributedDataParallel<SmallNet>;

// Always the same weights.
inline SmallNet make_small_net(torch::Device device) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  SmallNet net;
  net->to(device);
  return net;
}

// Samples are numbers; the targets are a function of them.
inline LossSum small_loss(SmallModel& model, const SampleBatch& batch) {
  const torch::Tensor factors = torch::tensor({0.1F, 0.7F, 1.3F, 2.9F});
  const torch::Tensor numbers = torch::tensor(batch.ids, torch::kFloat).unsqueeze(1) * factors;
  const torch::Tensor x = numbers.to(model.module()->passes.device());
  const torch::Tensor error = model(x.sin(), batch.ids[0] % 3 == 0) - x.sum(1).cos();
  return {error.square().narrow(0, 0, batch.num_counted).sum(), batch.num_counted};
}

}  // namespace tandem
