#pragma once

#include <tandem/event_log.h>
#include <tandem/training.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ddp/reducer.h"

namespace tandem {

// A part of a run as its Accelerator knows it: a model with the optimizer that trains it.
struct Part {
  std::string name;  // empty: the only one
  torch::nn::Module* module;
  std::weak_ptr<Reducer> reducer;
  LossScaler scaler;
  Optimizer* optimizer = nullptr;
  std::vector<NamedAverage> averages = {};

  Reducer& living_reducer() const;  // an Error if the DistributedDataParallel is gone
  std::string text() const { return name.empty() ? "the model" : "part '" + name + "'"; }
  std::uint64_t random_key() const;  // StepOptions::part
};

// While it lives, backward passes compute no gradients for the parameters of these parts.
class WithoutGradients {
 public:
  WithoutGradients(const std::deque<Part>& parts, const Part& except);
  ~WithoutGradients();
  WithoutGradients(const WithoutGradients&) = delete;
  WithoutGradients& operator=(const WithoutGradients&) = delete;

 private:
  std::vector<torch::Tensor> silenced_;
};

// What a step did to a part.
struct PartResult {
  std::string part;
  double lr = 0;
  StepResult result;
};

// The numbers of all parts as those of one step: losses are added, of the norms the largest is shown.
StepResult joined(const std::vector<PartResult>& parts);

// Norm and learning rate of each part that has a name.
EventFields values_of(const std::vector<PartResult>& parts);

}  // namespace tandem
