#include "models/deeplab/weights.h"

#include <tandem/error.h>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;
using Weights = std::map<std::string, Tensor>;

constexpr std::string_view kTrunk = "backbone.";
constexpr std::string_view kTrainingOnly = "lorm.";
constexpr std::string_view kCounter = ".num_batches_tracked";  // which older files do not have

Weights tensors_of(const Deeplab& model) {
  Weights tensors;
  for (const auto& item : model->named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model->named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

// The name in the model; a name that it cannot have for what is never taken.
std::string name_in_model(std::string_view name) {
  while (name.starts_with("module.")) name.remove_prefix(7);
  if (name.starts_with("conv1.") || name.starts_with("bn1.") || name.starts_with("layer")) return str(kTrunk, name);
  return std::string(name);
}

struct Misfits {
  std::vector<std::string> texts;

  void check(std::string_view where, const DeeplabOptions& options) const {
    if (texts.empty()) return;
    constexpr std::size_t kMostNamed = 4;
    const std::size_t named = std::min(texts.size(), kMostNamed);
    const std::vector<std::string> first(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(named));
    const std::string more = texts.size() > named ? str(" and ", texts.size() - named, " more") : "";
    fail(ErrorKind::Checkpoint,
         str(where, " does not have the trunk of this model, a ResNet-", options.trunk.layers, " of width ",
             options.trunk.width, ": ", join(first, ", "), more),
         "use the weights of a ResNet of the same depth, or another --layers");
  }
};

}  // namespace

PretrainedWeights pretrained_weights(const Deeplab& model, const Weights& tensors, std::string_view where) {
  const Weights own = tensors_of(model);
  PretrainedWeights result;
  Misfits misfits;
  for (const auto& [name, tensor] : tensors) {
    const std::string ours = name_in_model(name);
    const auto found = own.find(ours);
    const bool fits = found != own.end() && found->second.sizes() == tensor.sizes();
    if (fits) {
      result.weights[ours] = tensor;
    } else if (ours.starts_with(kTrunk)) {
      misfits.texts.push_back(found == own.end() ? str(name, " is not in it")
                                                 : str(name, " is ", c10::str(tensor.sizes()), " instead of ",
                                                       c10::str(found->second.sizes())));
    } else {
      result.left_out.push_back(name);
    }
  }
  for (const auto& [name, tensor] : own) {
    if (result.weights.contains(name)) continue;
    if (name.starts_with(kTrunk) && !name.ends_with(kCounter)) misfits.texts.push_back(str(name, " is missing"));
    result.missing.push_back(name);
  }
  misfits.check(where, model->options());
  return result;
}

Weights torchvision_weights(const Deeplab& model) {
  Weights weights;
  for (const auto& [name, tensor] : tensors_of(model)) {
    if (!name.starts_with(kTrainingOnly)) weights[name] = tensor.detach();
  }
  return weights;
}

}  // namespace tandem
