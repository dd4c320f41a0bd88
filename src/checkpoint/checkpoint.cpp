#include <tandem/checkpoint.h>
#include <tandem/error.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/named_tensors.h"

namespace tandem {
namespace {

void check_state(const std::string& state, const std::string& where) {
  try {
    parse_json(state, where);
  } catch (const Error& error) {
    fail(ErrorKind::Checkpoint, str("checkpoint: ", error.message()), "the state of a checkpoint is one JSON text");
  }
}

std::filesystem::path save(const std::filesystem::path& folder, const Checkpoint& checkpoint, const SaveRules& rules,
                           std::optional<double> metric) {
  check_state(checkpoint.state, kStateFile);
  TensorFile model = tensor_file(checkpoint.model);
  TensorFile optimizer = tensor_file(checkpoint.optimizer);
  const std::vector<NamedContent> contents = {{kModelFile, std::move(model.content)},
                                              {kOptimizerFile, std::move(optimizer.content)},
                                              {kStateFile, {.text = checkpoint.state}}};
  return save_files(kernel_files(), folder, checkpoint.step, metric, contents, rules);
}

}  // namespace

std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                                      const Retention& retention, std::optional<double> metric) {
  return save(folder, checkpoint, {retention}, metric);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  verify_checkpoint(path, Check::Checksums);
  const Manifest manifest = read_manifest(path);
  for (const char* name : {kModelFile, kOptimizerFile, kStateFile}) {
    if (std::ranges::count(manifest.files, name, &Manifest::File::name) > 0) continue;
    fail(ErrorKind::Checkpoint, str("checkpoint: ", path / kManifestFile, " does not list ", name),
         "use another checkpoint: this one is damaged");
  }
  Checkpoint checkpoint{.step = manifest.step,
                        .model = load_safetensors(path / kModelFile),
                        .optimizer = load_safetensors(path / kOptimizerFile),
                        .state = read_regular_file(path / kStateFile, ErrorKind::Checkpoint)};
  check_state(checkpoint.state, (path / kStateFile).native());
  return checkpoint;
}

std::string average_prefix(const std::string& name) { return name.empty() ? "ema." : str("ema-", name, '.'); }

namespace {

// What the averages of all parts are called, such as "generator.ema-fast.".
std::set<std::string> all_averages(const Checkpoint& checkpoint) {
  std::set<std::string> averages;
  for (const auto& [name, tensor] : checkpoint.optimizer) {
    const std::size_t begin = name.starts_with("ema") ? 0 : name.find(".ema") + 1;  // 0 if it is not found
    const std::size_t end = name.find('.', begin);
    const bool is_average = name.substr(begin).starts_with("ema") && name.substr(end + 1).starts_with("average.");
    if (is_average) averages.insert(name.substr(0, end + 1));
  }
  return averages;
}

// The chosen average; without a name the one without a name, or the only one of the part.
std::optional<std::string> find_average(const Checkpoint& checkpoint, const WeightChoice& choice) {
  const std::string part = choice.part.empty() ? "" : str(choice.part, '.');
  const std::string exact = part + average_prefix(choice.average);
  std::vector<std::string> of_part;
  for (const std::string& average : all_averages(checkpoint)) {
    if (average == exact) return exact;
    if (average.starts_with(part + "ema")) of_part.push_back(average);
  }
  return choice.average.empty() && of_part.size() == 1 ? std::optional(of_part.front()) : std::nullopt;
}

[[noreturn]] void fail_average(const Checkpoint& checkpoint, const WeightChoice& choice) {
  std::vector<std::string> known;
  for (const std::string& average : all_averages(checkpoint)) known.push_back(average.substr(0, average.size() - 1));
  const std::string wanted = choice.average.empty() ? "averaged weights" : str("average '", choice.average, "'");
  fail(ErrorKind::Checkpoint,
       str("checkpoint: step ", checkpoint.step, " has no ", wanted,
           choice.part.empty() ? "" : str(" of part '", choice.part, "'")),
       known.empty() ? "use the trained weights, or train with an average" : str("it has ", join_some(known, ", ")));
}

}  // namespace

bool has_average(const Checkpoint& checkpoint, const WeightChoice& choice) {
  return find_average(checkpoint, choice).has_value();
}

NamedTensors weights_of(const Checkpoint& checkpoint, const WeightChoice& choice) {
  const std::string part = choice.part.empty() ? "" : str(choice.part, '.');
  NamedTensors weights;
  for (const auto& [name, tensor] : checkpoint.model) {
    if (name.starts_with(part)) weights.emplace(name.substr(part.size()), tensor);
  }
  if (weights.empty()) {
    fail(ErrorKind::Checkpoint, str("checkpoint: step ", checkpoint.step, " has no part '", choice.part, "'"),
         "name a part that the run has trained");
  }
  if (!choice.is_averaged) return weights;
  const auto average = find_average(checkpoint, choice);
  if (!average) fail_average(checkpoint, choice);
  const std::string prefix = *average + "average.";
  for (const auto& [name, tensor] : checkpoint.optimizer) {
    if (name.starts_with(prefix)) weights.insert_or_assign(name.substr(prefix.size()), tensor);
  }
  return weights;
}

CheckpointSaver::CheckpointSaver(std::filesystem::path folder, Retention retention)
    : folder_(std::move(folder)), retention_(retention) {
  make_folders(kernel_files(), folder_);
  same_ = std::make_unique<SameFolder>(folder_);
}

CheckpointSaver::~CheckpointSaver() = default;

void CheckpointSaver::adopt(const std::filesystem::path& checkpoint) {
  const std::vector<SavedCheckpoint> saved = list_checkpoints(folder_).complete;  // the last saved one first
  const auto adopted = std::ranges::find_if(saved, [&](const SavedCheckpoint& c) {
    std::error_code unknown;
    return std::filesystem::equivalent(c.path, checkpoint, unknown);
  });
  for (auto own = adopted; own != saved.end(); ++own) own_.insert(own->path.filename());
}

void CheckpointSaver::save(const Checkpoint& checkpoint, std::optional<double> metric) {
  finish();
  copy_.step = checkpoint.step;
  copy_.state = checkpoint.state;
  copy_to_cpu(checkpoint.model, copy_.model);
  copy_to_cpu(checkpoint.optimizer, copy_.optimizer);
  under_way_ = std::async(std::launch::async, [this, metric] {
    return tandem::save(folder_, copy_, {retention_, &own_, same_.get()}, metric);
  });
}

std::optional<std::filesystem::path> CheckpointSaver::finish() {
  if (under_way_.valid()) {
    last_ = under_way_.get();
    own_.insert(last_->filename());
  }
  return last_;
}

}  // namespace tandem
