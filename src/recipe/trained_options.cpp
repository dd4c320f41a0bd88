#include "recipe/trained_options.h"

#include <tandem/error.h>
#include <tandem/mixed_precision.h>

#include <string>

#include "base/crc32c.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/safetensors.h"
#include "recipe/content_key.h"
#include "recipe/find_model.h"

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

std::filesystem::path load_trained(torch::nn::Module& module, const TrainedOptions& options, const Communicator& comm,
                                   const WeightChoice& choice) {
  std::filesystem::path checkpoint = load_run_weights(module, options.from, options.weights, choice);
  module.to(comm.device(), weight_type(options.precision, comm.device()));
  module.eval();
  return checkpoint;
}

std::string weights_key(const torch::nn::Module& module) {
  std::string all;
  for (const auto& [name, tensor] : named_tensors(module)) {
    const at::Tensor bytes = tensor.detach().cpu().contiguous();
    const std::string_view content(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes());
    all += str(name, ' ', c10::toString(bytes.scalar_type()), ' ', crc32c(content), '\n');
  }
  return content_key(all);
}

namespace {

// From the header alone, since the optimizer's tensors are twice as large as the weights.
bool has_average(const std::filesystem::path& checkpoint, const WeightChoice& choice) {
  Checkpoint names;
  const SafetensorsFile optimizer(checkpoint / kOptimizerFile);
  for (const TensorEntry& tensor : optimizer.header().tensors) {
    names.optimizer.emplace(tensor.name, at::Tensor());
  }
  return tandem::has_average(names, choice);
}

}  // namespace

std::filesystem::path load_run_weights(torch::nn::Module& module, const std::filesystem::path& from, Weights weights,
                                       WeightChoice choice) {
  std::filesystem::path path = find_weights(from);
  load_checkpoint_weights(module, path, weights, std::move(choice));
  return path;
}

void load_checkpoint_weights(torch::nn::Module& module, const std::filesystem::path& path, Weights weights,
                             WeightChoice choice) {
  choice.is_averaged = weights == Weights::Averaged || (weights == Weights::Auto && has_average(path, choice));
  Checkpoint checkpoint;
  if (choice.is_averaged) {
    checkpoint = load_checkpoint(path);
  } else {
    checkpoint.model = load_safetensors(path / kModelFile);
  }
  copy_into(named_tensors(module), weights_of(checkpoint, choice));
}

}  // namespace tandem
