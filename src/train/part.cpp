#include "train/part.h"

#include <tandem/error.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/text.h"

namespace tandem {

Reducer& Part::living_reducer() const {
  if (const auto alive = reducer.lock()) return *alive;
  fail(ErrorKind::Config, str("accelerator: what prepare() returned for ", text(), " is gone"),
       "keep it as long as the loop: `auto model = accelerator.prepare(net)`");
}

std::uint64_t Part::random_key() const { return name.empty() ? 0 : 1 + std::uint64_t{crc32c(name)}; }

WithoutGradients::WithoutGradients(const std::deque<Part>& parts, const Part& except) {
  for (const Part& part : parts) {
    if (&part == &except) continue;
    for (const torch::Tensor& parameter : part.living_reducer().trained_parameters()) {
      if (parameter.requires_grad()) silenced_.push_back(parameter.requires_grad_(false));
    }
  }
}

WithoutGradients::~WithoutGradients() {
  for (const torch::Tensor& parameter : silenced_) parameter.requires_grad_(true);
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
