#include "checkpoint/named_tensors.h"

#include <tandem/error.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/folder.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::array<std::pair<const char*, torch::ScalarType>, 10> kTypes{{{"BOOL", torch::kBool},
                                                                            {"U8", torch::kByte},
                                                                            {"I8", torch::kChar},
                                                                            {"I16", torch::kShort},
                                                                            {"I32", torch::kInt},
                                                                            {"I64", torch::kLong},
                                                                            {"F16", torch::kHalf},
                                                                            {"BF16", torch::kBFloat16},
                                                                            {"F32", torch::kFloat},
                                                                            {"F64", torch::kDouble}}};

constexpr const char* kTypesHint = "known are BOOL U8 I8 I16 I32 I64 F16 BF16 F32 F64: convert it, or leave it out";

torch::ScalarType type_of(const TensorEntry& entry, const std::filesystem::path& path) {
  const auto* found =
      std::ranges::find(kTypes, entry.dtype, [](const auto& type) { return std::string_view(type.first); });
  if (found != kTypes.end()) return found->second;
  fail(ErrorKind::Checkpoint, str("safetensors: ", path, ": tensor '", entry.name, "' is of type ", entry.dtype),
       kTypesHint);
}

// The name in a file of the type of a tensor that can be written.
std::string checked_type(const std::string& name, const Tensor& tensor) {
  if (name == "__metadata__" || !is_utf8(name)) {
    fail(ErrorKind::Checkpoint, str("safetensors: '", name, "' cannot be the name of a tensor"),
         "give it a plain UTF-8 name");
  }
  if (!tensor.defined() || tensor.layout() != torch::kStrided || tensor.is_meta()) {
    fail(ErrorKind::Checkpoint, str("safetensors: tensor '", name, "' is undefined, sparse or without values"),
         "save plain tensors only: to_dense() makes one of a sparse one");
  }
  const auto* found = std::ranges::find(kTypes, tensor.scalar_type(), &decltype(kTypes)::value_type::second);
  if (found != kTypes.end()) return found->first;
  fail(ErrorKind::Checkpoint, str("safetensors: tensor '", name, "' is ", layout_text(tensor)), kTypesHint);
}

NamedTensors load_file(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const TensorEntry& entry : file.header().tensors) {
    const Tensor tensor = torch::empty(entry.shape, type_of(entry, path));
    file.read(entry, tensor.data_ptr());
    tensors.emplace(entry.name, tensor);
  }
  for (const auto& [name, first] : aliases(file.header())) tensors.emplace(name, tensors.at(first));
  return tensors;
}

}  // namespace

std::string layout_text(const Tensor& tensor) {
  return str(torch::toString(tensor.scalar_type()), ' ', list_text(tensor.sizes()));
}

Metadata other_names(const NamedTensors& tensors) {
  using Place = std::tuple<const void*, torch::ScalarType, std::vector<std::int64_t>, std::vector<std::int64_t>>;
  std::map<Place, std::string> first_names;
  Metadata others;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined() || tensor.layout() != torch::kStrided || tensor.numel() == 0) continue;
    const Place place(tensor.const_data_ptr(), tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec());
    const auto [known, is_new] = first_names.try_emplace(place, name);
    if (!is_new) others.emplace(name, known->second);
  }
  return others;
}

TensorFile tensor_file(const NamedTensors& tensors, Metadata metadata) {
  for (const auto& [key, value] : metadata) {
    if (tensors.contains(value)) {
      fail(ErrorKind::Checkpoint,
           str("safetensors: metadata ", key, '=', value, " would be read as another name of that tensor"),
           "use another value");
    }
  }
  const Metadata others = other_names(tensors);
  TensorFile file;
  std::vector<TensorBytes> entries;
  for (const auto& [name, tensor] : tensors) {
    const std::string type = checked_type(name, tensor);
    if (others.contains(name)) continue;
    const Tensor& plain = file.tensors.emplace_back(tensor.detach().cpu().resolve_neg().contiguous());
    const std::string_view bytes(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
    entries.push_back({.name = name, .dtype = type, .shape = plain.sizes().vec(), .bytes = bytes});
  }
  metadata.emplace("format", "pt");
  metadata.insert(others.begin(), others.end());
  file.content = safetensors_content(std::move(entries), metadata);
  return file;
}

void copy_to_cpu(const NamedTensors& tensors, NamedTensors& copies) {
  const torch::NoGradGuard no_grad;
  const Metadata others = other_names(tensors);
  std::erase_if(copies, [&](const auto& copy) { return !tensors.contains(copy.first) || others.contains(copy.first); });
  for (const auto& [name, tensor] : tensors) {
    checked_type(name, tensor);
    if (others.contains(name)) continue;
    Tensor& copy = copies[name];
    // One that two names share belonged to a tensor that had both of them at the last save.
    const bool is_own = copy.defined() && copy.use_count() == 1;
    if (!is_own || copy.scalar_type() != tensor.scalar_type() || copy.sizes() != tensor.sizes()) {
      copy = torch::empty(tensor.sizes(), torch::dtype(tensor.scalar_type()).pinned_memory(tensor.is_cuda()));
    }
    copy.copy_(tensor);
  }
  for (const auto& [name, first] : others) copies[name] = copies.at(first);
}

NamedTensors named_tensors(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : module.named_parameters().pairs()) tensors.emplace(name, tensor);
  for (const auto& [name, tensor] : module.named_buffers().pairs()) tensors.emplace(name, tensor);
  return tensors;
}

NamedTensors load_safetensors(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return load_file(path);
  const std::string where = path / kWeightIndexFile;
  const auto index = read_optional_file(where);
  if (!index) return load_file(path / kModelFile);
  std::set<std::filesystem::path> files;
  const Json json = parse_json(*index, where);
  read_json_file(where, [&] {
    for (const auto& [name, file] : json.at("weight_map").as_object()) files.insert(file.as_string());
  });
  NamedTensors weights;
  for (const std::filesystem::path& file : files) weights.merge(load_file(path / file.filename()));
  return weights;
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  replace_file(path, tensor_file(tensors, metadata).content, ErrorKind::Checkpoint);
}

}  // namespace tandem
