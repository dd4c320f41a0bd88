#include <tandem/checkpoint.h>
#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/named_tensors.h"

namespace tandem {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kStateFile = "state.json";

void check_state(const std::string& state, const std::string& where) {
  try {
    parse_json(state, where);
  } catch (const Error& error) {
    fail(ErrorKind::Checkpoint, str("checkpoint: ", error.message()), "the state of a checkpoint is one JSON text");
  }
}

}  // namespace

std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                      const Retention& retention, std::optional<double> metric) {
  check_state(checkpoint.state, kStateFile);
  TensorFile model = tensor_file(checkpoint.model);
  TensorFile optimizer = tensor_file(checkpoint.optimizer);
  const std::vector<NamedContent> contents = {{kModelFile, std::move(model.content)},
                                              {kOptimizerFile, std::move(optimizer.content)},
                                              {kStateFile, {.text = checkpoint.state}}};
  return save_files(kernel_files(), folder, checkpoint.step, metric, contents, retention);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  verify_checkpoint(path, Check::Checksums);
  Checkpoint checkpoint{.step = read_manifest(path).step,
                        .model = load_safetensors(path / kModelFile),
                        .optimizer = load_safetensors(path / kOptimizerFile),
                        .state = read_file(path / kStateFile, ErrorKind::Checkpoint)};
  check_state(checkpoint.state, (path / kStateFile).native());
  return checkpoint;
}

std::string average_prefix(const std::string& name) { return name.empty() ? "ema." : str("ema-", name, '.'); }

namespace {

std::string averages_of(const WeightChoice& choice) {
  return str(choice.part, choice.part.empty() ? "" : ".", average_prefix(choice.average), "average.");
}

}  // namespace

bool has_average(const Checkpoint& checkpoint, const WeightChoice& choice) {
  const std::string prefix = averages_of(choice);
  return std::ranges::any_of(checkpoint.optimizer, [&](const auto& named) { return named.first.starts_with(prefix); });
}

NamedTensors weights_of(const Checkpoint& checkpoint, const WeightChoice& choice) {
  const std::string part = choice.part.empty() ? "" : str(choice.part, '.');
  NamedTensors weights;
  for (const auto& [name, tensor] : checkpoint.model) {
    if (name.starts_with(part)) weights.emplace(name.substr(part.size()), tensor);
  }
  if (weights.empty() || (choice.is_averaged && !has_average(checkpoint, choice))) {
    fail(ErrorKind::Checkpoint,
         str("checkpoint: step ", checkpoint.step, " has no ",
             weights.empty() ? str("part '", choice.part, "'") : "averaged weights"),
         "use the weights that the run has, or train with an average");
  }
  if (!choice.is_averaged) return weights;
  const std::string prefix = averages_of(choice);
  for (const auto& [name, tensor] : checkpoint.optimizer) {
    if (name.starts_with(prefix)) weights.insert_or_assign(name.substr(prefix.size()), tensor);
  }
  return weights;
}

CheckpointSaver::CheckpointSaver(std::filesystem::path folder, Retention retention)
    : folder_(std::move(folder)), retention_(retention) {}

void CheckpointSaver::save(const Checkpoint& checkpoint, std::optional<double> metric) {
  finish();
  copy_.step = checkpoint.step;
  copy_.state = checkpoint.state;
  copy_to_cpu(checkpoint.model, copy_.model);
  copy_to_cpu(checkpoint.optimizer, copy_.optimizer);
  under_way_ =
      std::async(std::launch::async, [this, metric] { return save_checkpoint(folder_, copy_, retention_, metric); });
}

std::optional<std::filesystem::path> CheckpointSaver::finish() {
  if (under_way_.valid()) last_ = under_way_.get();
  return last_;
}

}  // namespace tandem
