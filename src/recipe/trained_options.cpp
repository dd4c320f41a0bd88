#include "recipe/trained_options.h"

#include <tandem/autocast.h>
#include <tandem/error.h>

#include <set>
#include <string>

#include "base/fd.h"
#include "base/json.h"
#include "recipe/find_model.h"
#include "recipe/model_files.h"

namespace tandem {

void validate(const TrainedOptions& options) {
  if (options.from.empty()) fail(ErrorKind::Config, "from is empty", "name the folder of a run, such as runs/latest");
}

c10::ScalarType weight_type(Precision precision, const c10::Device& device) {
  switch (choose_precision(precision, facts_of(device)).precision) {
    case Precision::Bf16: return c10::kBFloat16;
    case Precision::Fp16: return c10::kHalf;
    default: return c10::kFloat;
  }
}

std::filesystem::path load_trained(torch::nn::Module& module, const TrainedOptions& options, const Communicator& comm) {
  std::filesystem::path checkpoint = load_run_weights(module, options.from);
  module.to(comm.device(), weight_type(options.precision, comm.device()));
  module.eval();
  return checkpoint;
}

std::filesystem::path load_run_weights(torch::nn::Module& module, const std::filesystem::path& from) {
  std::filesystem::path checkpoint = find_weights(from);
  copy_into(named_tensors(module), load_safetensors(checkpoint / kWeightsFile));
  return checkpoint;
}

NamedTensors load_folder_weights(const std::filesystem::path& folder) {
  const auto index = read_if_there(folder / kWeightIndexFile);
  if (!index) return load_safetensors(folder / kWeightsFile);
  std::set<std::filesystem::path> files;
  const std::string where = folder / kWeightIndexFile;
  const Json json = parse_json(*index, where);
  read_json_file(where, [&] {
    for (const auto& [name, file] : json.at("weight_map").as_object()) files.insert(file.as_string());
  });
  NamedTensors weights;
  for (const std::filesystem::path& file : files) weights.merge(load_safetensors(folder / file.filename()));
  return weights;
}

}  // namespace tandem
