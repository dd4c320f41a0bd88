#pragma once

#include <tandem/ema.h>
#include <tandem/event_log.h>
#include <tandem/mixed_precision.h>
#include <tandem/training.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddp/reducer.h"

namespace tandem {

// A part of a run, as its Accelerator keeps it: a model with its optimizer.
struct PreparedPart {
  std::string name;  // empty: the only part
  torch::nn::Module* module;
  std::weak_ptr<Reducer> reducer;
  LossScaler scaler;
  Optimizer* optimizer = nullptr;
  std::vector<NamedAverage> averages = {};

  Reducer& living_reducer() const;  // an Error if the DistributedDataParallel was destroyed
  std::string text() const { return name.empty() ? "the model" : "part '" + name + "'"; }
  std::uint64_t random_key() const;  // StepOptions::part
  bool trains(const torch::Tensor& parameter) const;
  void update_averages() const;
};

// Keeps the training of one part from changing the others: while it lives their parameters get no gradients, and in the
// end their buffers, such as the running statistics of batch norm, are restored.
class OthersUnchanged {
 public:
  OthersUnchanged(const std::deque<PreparedPart>& parts, const PreparedPart& trained);
  ~OthersUnchanged();
  OthersUnchanged(const OthersUnchanged&) = delete;
  OthersUnchanged& operator=(const OthersUnchanged&) = delete;

 private:
  std::vector<torch::Tensor> without_gradient_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> buffers_;  // with a copy of each
};

// While it lives, the models are in eval mode and have their averaged weights, and autocast is on.
class EvaluationGuard {
 public:
  EvaluationGuard(const std::deque<PreparedPart>& parts, torch::Device device, Precision precision);
  ~EvaluationGuard();
  EvaluationGuard(const EvaluationGuard&) = delete;
  EvaluationGuard& operator=(const EvaluationGuard&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> modes_;  // of each layer: whether it was in training mode
  std::deque<AveragedWeights> averages_;
  Autocast autocast_;
};

// The update of one part in a step.
struct PartResult {
  std::string part;
  double lr = 0;
  StepResult result;
};

// The results of all parts as that of one step: the sum of the losses, the largest norm.
StepResult joined(const std::vector<PartResult>& parts);

// Gradient norm and learning rate of each part that has a name.
EventFields values_of(const std::vector<PartResult>& parts);

}  // namespace tandem
