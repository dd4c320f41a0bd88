#include <tandem/checkpoint.h>
#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "checkpoint/named_tensors.h"

namespace tandem {
namespace {

using torch::Tensor;

// Which value each target takes, and why the others cannot be copied.
struct Matches {
  std::map<std::string, std::string> sources;  // of a target, the name of its value
  LeftOutWeights left_out;
  std::vector<std::string> faults;
};

std::string name_and_shape(const std::string& name, const Tensor& tensor) {
  return str(name, ' ', list_text(tensor.sizes()));
}

// Finds the targets of all values. The faults of extra ones come last, so that many of them do not hide the others.
Matches find_targets(const NamedTensors& targets, const NamedTensors& values, const LoadWeightsOptions& options) {
  Matches found;
  for (const auto& [name, value] : values) {
    const std::string wanted = options.rename ? options.rename(name) : name;
    if (targets.contains(wanted)) {
      const auto [other, is_new] = found.sources.emplace(wanted, name);
      if (!is_new) found.faults.push_back(str(other->second, " and ", name, " are both renamed to ", wanted));
      continue;
    }
    found.left_out.extra.push_back(name);
    if (wanted.empty() || options.allow_extra) continue;
    const std::string renamed = wanted == name ? "" : str(", renamed to ", wanted, ',');
    found.faults.push_back(str(name_and_shape(name, value), renamed, " is unexpected"));
  }
  return found;
}

bool fits(const Tensor& target, const Tensor& value, bool cast) {
  const bool is_cast = cast && target.is_floating_point() && value.is_floating_point();
  return (is_cast || target.scalar_type() == value.scalar_type()) && target.sizes() == value.sizes();
}

Matches match(const NamedTensors& targets, const NamedTensors& values, const LoadWeightsOptions& options) {
  Matches found = find_targets(targets, values, options);
  std::vector<std::string> faults;
  const Metadata first_names = other_names(targets);
  const auto first_name = [&](const std::string& name) {
    const auto first = first_names.find(name);
    return first == first_names.end() ? name : first->second;
  };
  std::map<std::string, std::string> givers;  // of a tensor, by its first name, the first of its values
  for (const auto& [name, source] : found.sources) {
    const Tensor& target = targets.at(name);
    const Tensor& value = values.at(source);
    const std::string& giver = givers.emplace(first_name(name), source).first->second;
    if (!fits(target, value, options.cast)) {
      faults.push_back(str(source, " is ", layout_text(value), " and should be ", layout_text(target)));
    } else if (giver != source && !torch::equal(value, values.at(giver).to(value.dtype()))) {
      faults.push_back(str(source, " and ", giver, " differ, and are one tensor of the module"));
    }
  }
  for (const auto& [name, tensor] : targets) {
    if (givers.contains(first_name(name))) continue;
    found.left_out.missing.push_back(name);
    if (!options.allow_missing) faults.push_back(str(name_and_shape(name, tensor), " is missing"));
  }
  found.faults.insert(found.faults.begin(), faults.begin(), faults.end());
  return found;
}

// `subject` begins the sentence of an Error.
LeftOutWeights copy_matches(const NamedTensors& targets, const NamedTensors& values, const LoadWeightsOptions& options,
                            const std::string& subject, const char* hint) {
  Matches found = match(targets, values, options);
  if (!found.faults.empty()) {
    fail(ErrorKind::Checkpoint,
         str(subject, ": ", found.faults.size(), " of ", targets.size() + found.left_out.extra.size(),
             " tensors do not fit: ", join_some(found.faults, "; ")),
         hint);
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, source] : found.sources) targets.at(name).copy_(values.at(source));
  return std::move(found.left_out);
}

constexpr const char* kWeightsHint =
    "use config.json and model.safetensors of the same model, or the options of load_weights: rename, cast, "
    "allow_missing, allow_extra";

}  // namespace

void copy_into(const NamedTensors& targets, const NamedTensors& values) {
  copy_matches(targets, values, {}, "checkpoint",
               "build the model with the settings that the checkpoint was made with");
}

LeftOutWeights load_weights(torch::nn::Module& module, const std::filesystem::path& path,
                            const LoadWeightsOptions& options) {
  return copy_matches(named_tensors(module), load_safetensors(path), options, str("weights: ", path), kWeightsHint);
}

LeftOutWeights load_weights(torch::nn::Module& module, const NamedTensors& weights, const LoadWeightsOptions& options) {
  return copy_matches(named_tensors(module), weights, options, "weights", kWeightsHint);
}

}  // namespace tandem
