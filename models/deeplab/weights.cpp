#include "models/deeplab/weights.h"

#include <tandem/error.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace tandem {
namespace {

using torch::Tensor;
using Weights = std::map<std::string, Tensor>;

constexpr std::string_view kTrunk = "backbone.";
constexpr std::string_view kHead = "classifier.";
constexpr std::string_view kTrainingOnly = "lorm.";
constexpr std::string_view kCounter = ".num_batches_tracked";  // which older files do not have

Weights tensors_of(const Deeplab& model) {
  Weights tensors;
  for (const auto& item : model->named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model->named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

// The name in the model, or the name itself if it is of nothing in a trunk.
std::string name_in_model(std::string_view name) {
  while (name.starts_with("module.")) name.remove_prefix(7);
  constexpr std::array kParts = {"conv1.", "bn1.", "layer1.", "layer2.", "layer3.", "layer4."};
  const bool is_trunk = std::ranges::any_of(kParts, [&](const char* part) { return name.starts_with(part); });
  return is_trunk ? str(kTrunk, name) : std::string(name);
}

// The trunk of a file, as its shapes show it.
struct TrunkOfFile {
  std::int64_t width = 0;
  std::optional<std::int64_t> layers;  // nothing: not those of a ResNet of ours
};

// By the names of the model; nothing if there is no trunk.
std::optional<TrunkOfFile> find_trunk(const Weights& file) {
  const auto stem = file.find("backbone.conv1.weight");
  if (stem == file.end() || stem->second.dim() != 4) return std::nullopt;
  std::array<int, 4> blocks = {};
  for (const auto& [name, tensor] : file) {
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const bool is_block = name.starts_with(str("backbone.layer", stage + 1, '.')) && name.ends_with(".conv1.weight");
      blocks.at(stage) += is_block ? 1 : 0;
    }
  }
  const bool is_bottleneck = file.contains("backbone.layer1.0.conv3.weight");
  return TrunkOfFile{.width = stem->second.size(0), .layers = layers_with(blocks, is_bottleneck)};
}

// A tensor with as many rows as there are classes, by the kind of the head; the ASPP is part of other heads, too.
std::optional<HeadOfFile> find_head(const Weights& file) {
  const std::pair<const char*, SegmentHead> kinds[] = {{"classifier.4.bias", SegmentHead::DeeplabV3},
                                                       {"classifier.last.bias", SegmentHead::DeeplabV3Plus},
                                                       {"classifier.convs.0.bias", SegmentHead::DilatedSum},
                                                       {"classifier.0.project.1.bias", SegmentHead::AsppToClasses}};
  for (const auto& [name, kind] : kinds) {
    const auto found = file.find(name);
    const bool has_aspp = kind == SegmentHead::DilatedSum || file.contains("classifier.0.project.0.weight");
    if (has_aspp && found != file.end() && found->second.dim() == 1) return HeadOfFile{kind, found->second.size(0)};
  }
  return std::nullopt;
}

void check_size(const std::optional<TrunkOfFile>& found, const ResnetOptions& wanted, std::string_view where) {
  if (!found) {
    fail(ErrorKind::Checkpoint, str(where, " has no ResNet: there is no conv1.weight in it"),
         "name the weights of a ResNet, or of a segmentation model on one");
  }
  if (!found->layers || (*found->layers == wanted.layers && found->width == wanted.width)) return;
  std::string flags;
  if (*found->layers != wanted.layers) flags += str(" --layers ", *found->layers);
  if (found->width != wanted.width) flags += str(" --width ", found->width);
  fail(ErrorKind::Checkpoint,
       str(where, " has a ResNet-", *found->layers, " of width ", found->width, ", and this model a ResNet-",
           wanted.layers, " of width ", wanted.width),
       str("give", flags, ", or other weights"));
}

// Of a trunk that has the right size and still does not fit.
void check_misfits(const std::vector<std::string>& texts, const ResnetOptions& trunk, std::string_view where) {
  if (texts.empty()) return;
  constexpr std::size_t kMostNamed = 4;
  const std::size_t named = std::min(texts.size(), kMostNamed);
  const std::vector<std::string> first(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(named));
  const std::string more = texts.size() > named ? str(" and ", texts.size() - named, " more") : "";
  fail(ErrorKind::Checkpoint,
       str(where, " does not have the trunk of this model, a ResNet-", trunk.layers, " of width ", trunk.width, ": ",
           join(first, ", "), more),
       "use the weights of a plain ResNet-18, 34, 50, 101 or 152, which variants such as ResNeXt are not");
}

// Of a tensor of the trunk that is not taken.
std::string misfit_text(const std::string& name, const Tensor& tensor, const Weights& own) {
  const auto found = own.find(name_in_model(name));
  if (found == own.end()) return str(name, " is not in it");
  return str(name, " is ", c10::str(tensor.sizes()), " instead of ", c10::str(found->second.sizes()));
}

// What a model has and does not take.
std::vector<std::string> missing_names(const Weights& own, const Weights& taken) {
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : own) {
    if (!taken.contains(name) && !name.ends_with(kCounter)) missing.push_back(name);
  }
  return missing;
}

}  // namespace

PretrainedWeights pretrained_weights(const Deeplab& model, const Weights& tensors, std::string_view where) {
  const Weights own = tensors_of(model);
  const ResnetOptions& trunk = model->options().trunk;
  Weights file;
  for (const auto& [name, tensor] : tensors) file[name_in_model(name)] = tensor;
  check_size(find_trunk(file), trunk, where);
  PretrainedWeights result;
  result.head = find_head(file);
  const bool is_same_kind = result.head && result.head->kind == model->options().head;
  std::vector<std::string> misfits;
  for (const auto& [name, tensor] : tensors) {
    const std::string ours = name_in_model(name);
    const auto found = own.find(ours);
    const bool is_other_head = ours.starts_with(kHead) && !is_same_kind;
    const bool fits = !is_other_head && found != own.end() && found->second.sizes() == tensor.sizes();
    if (fits) {
      result.weights[ours] = tensor;
    } else if (ours.starts_with(kTrunk)) {
      misfits.push_back(misfit_text(name, tensor, own));
    } else {
      result.left_out.push_back(name);
    }
  }
  result.missing = missing_names(own, result.weights);
  for (const std::string& name : result.missing) {
    if (name.starts_with(kTrunk)) misfits.push_back(str(name, " is missing"));
  }
  check_misfits(misfits, trunk, where);
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
