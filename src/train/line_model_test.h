#pragma once

#include <tandem/train_step.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace tandem {

// The loss of a sample x is w * x, so the gradient of the mean loss is the mean of x.
struct LineImpl : torch::nn::Module {
  explicit LineImpl(torch::Device device = torch::kCPU) {
    weight = register_parameter("weight", torch::zeros({1}, device));
  }
  torch::Tensor forward(const torch::Tensor& x) { return weight * x; }
  double value() const { return weight.item<double>(); }

  torch::Tensor weight;
};
TORCH_MODULE(Line);
using LineModel = DistributedDataParallel<Line>;

struct Numbers {
  std::vector<double> x;
  std::vector<std::int64_t> ids = {};
};

inline LossSum line_loss(LineModel& model, const Numbers& batch) {
  const auto options = torch::dtype(torch::kFloat).device(model.module()->weight.device());
  return {model(torch::tensor(batch.x, options)).sum(), static_cast<std::int64_t>(batch.x.size())};
}

inline StepResult step_of(LineModel& model, Optimizer& optimizer, LossScaler& scaler,
                          const std::vector<Numbers>& batches, const StepOptions& options = {.lr = 1}) {
  const auto loss = [&](const Numbers& batch) { return line_loss(model, batch); };
  return train_step(model, optimizer, scaler, batches, loss, options);
}

inline StepResult step_of(LineModel& model, Optimizer& optimizer, const std::vector<Numbers>& batches,
                          const StepOptions& options = {.lr = 1}) {
  LossScaler scaler(Precision::Fp32, model.module()->weight.device());
  return step_of(model, optimizer, scaler, batches, options);
}

}  // namespace tandem
