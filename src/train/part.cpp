#include "train/part.h"

#include <tandem/error.h>
#include <torch/utils.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/text.h"

namespace tandem {

Reducer& PreparedPart::living_reducer() const {
  if (const auto alive = reducer.lock()) return *alive;
  fail(ErrorKind::Config, str("accelerator: what prepare() returned for ", text(), " was destroyed"),
       "keep it alive during the loop: `auto model = accelerator.prepare(net)`");
}

std::uint64_t PreparedPart::random_key() const { return name.empty() ? 0 : 1 + std::uint64_t{crc32c(name)}; }

bool PreparedPart::trains(const torch::Tensor& parameter) const {
  return std::ranges::any_of(living_reducer().trained_parameters(),
                             [&](const torch::Tensor& trained) { return trained.is_same(parameter); });
}

void PreparedPart::update_averages() const {
  for (const NamedAverage& average : averages) average.average->update();
}

OthersUnchanged::OthersUnchanged(const std::deque<PreparedPart>& parts, const PreparedPart& trained) {
  for (const PreparedPart& part : parts) {
    if (&part == &trained) continue;
    const Reducer& reducer = part.living_reducer();
    for (const torch::Tensor& parameter : reducer.trained_parameters()) {
      if (parameter.requires_grad()) without_gradient_.push_back(parameter);
    }
    for (const torch::Tensor& buffer : reducer.buffers()) buffers_.emplace_back(buffer, buffer.detach().clone());
  }
  for (const torch::Tensor& parameter : without_gradient_) parameter.requires_grad_(false);
}

OthersUnchanged::~OthersUnchanged() {
  const torch::NoGradGuard no_grad;
  for (const torch::Tensor& parameter : without_gradient_) parameter.requires_grad_(true);
  for (const auto& [buffer, copy] : buffers_) buffer.copy_(copy);
}

EvaluationGuard::EvaluationGuard(const std::deque<PreparedPart>& parts, torch::Device device, Precision precision)
    : autocast_(device.type(), precision) {
  for (const PreparedPart& part : parts) {
    for (const auto& layer : part.module->modules()) modes_.emplace_back(layer.get(), layer->is_training());
    part.module->eval();
    const auto average =
        std::ranges::find_if(part.averages, [](const auto& a) { return !a.average->has_own_module(); });
    if (average != part.averages.end()) averages_.emplace_back(*average->average);
  }
}

// train() of a module sets its layers too; those come later in the list and get their own mode back.
EvaluationGuard::~EvaluationGuard() {
  for (const auto& [layer, was_training] : modes_) layer->train(was_training);
}

StepResult joined(const std::vector<PartResult>& parts) {
  if (parts.size() == 1 && parts.front().part.empty()) return parts.front().result;
  StepResult all;
  for (const auto& [part, lr, result] : parts) {
    all.loss += result.loss;
    all.count = std::max(all.count, result.count);
    all.work = std::max(all.work, result.work);
    all.norm = std::max(all.norm, result.norm);
    all.was_skipped = all.was_skipped || result.was_skipped;
    for (const auto& [term, mean] : result.terms) {
      all.terms.emplace_back(result.terms.size() == 1 ? part : str(part, '.', term), mean);
    }
  }
  return all;
}

EventFields values_of(const std::vector<PartResult>& parts) {
  EventFields values;
  for (const auto& [part, lr, result] : parts) {
    if (part.empty()) continue;
    values.emplace_back(str(part, ".norm"), result.norm);
    values.emplace_back(str(part, ".lr"), lr);
  }
  return values;
}

}  // namespace tandem
