#include "recipe/find_model.h"

#include <tandem/checkpoint_folder.h>
#include <tandem/detail/value.h>
#include <tandem/error.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <vector>

#include "base/machine.h"
#include "base/text.h"
#include "base/worker_env.h"
#include "checkpoint/folder.h"
#include "recipe/model_files.h"
#include "train/run_files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

bool has_safetensors(const fs::path& folder) {
  return fs::exists(folder / kWeightsFile) || fs::exists(folder / kWeightIndexFile);
}

bool is_model(const fs::path& folder) { return fs::exists(folder / kModelConfigFile) || find_description(folder); }

// The folder itself or those below it, at any depth, that hold a model; of those, the ones whose weights can be read if
// there are any.
std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> found;
  if (is_model(folder)) return {folder};
  std::error_code missing;
  for (auto it = fs::recursive_directory_iterator(folder, missing); it != fs::end(it); it.increment(missing)) {
    if (!it->is_directory(missing) || !fs::exists(it->path() / kModelConfigFile)) continue;
    found.push_back(it->path());
    it.disable_recursion_pending();
  }
  if (std::ranges::any_of(found, has_safetensors)) std::erase_if(found, std::not_fn(has_safetensors));
  std::ranges::sort(found);
  return found;
}

// Folders that may hold a model of that name, the most likely first.
std::vector<fs::path> places_of(const std::string& name, const fs::path& inputs) {
  const fs::path home = environment_variable("HOME").value_or("");
  const fs::path hugging_face = environment_variable("HF_HOME").value_or((home / ".cache/huggingface").native());
  const fs::path cache = environment_variable("HF_HUB_CACHE").value_or((hugging_face / "hub").native());
  std::vector<fs::path> places;
  std::error_code missing;
  for (const char* owner : {"models--", "models--openai-community--"}) {
    const std::string folder = str(owner, replace_all(name, "/", "--"));
    for (const auto& entry : fs::directory_iterator(cache / folder / "snapshots", missing)) {
      places.push_back(entry.path());
    }
  }
  constexpr int kDepth = 4;
  for (auto it = fs::recursive_directory_iterator(inputs, missing); it != fs::end(it); it.increment(missing)) {
    if (it.depth() >= kDepth) it.disable_recursion_pending();
    if (it->path().filename() == fs::path(name).filename()) places.push_back(it->path());
  }
  return places;
}

// The only model in that place, which is there; nothing if there is none.
std::optional<fs::path> only_model_in(const fs::path& place) {
  const std::vector<fs::path> models = models_in(place);
  if (models.empty()) return std::nullopt;
  if (models.size() == 1) return models.front();
  std::vector<std::string> names(models.begin(), models.end());
  fail(ErrorKind::Data, str("there are ", models.size(), " models in ", place, ": ", join_some(names, ", ")),
       str("name one of them: --init ", shell_quoted(names.back())));
}

std::string missing_model_hint(const std::string& name) {
  if (is_kaggle(environment_variable)) {
    return str("add it to the notebook: Add Input, Models, search for ", fs::path(name).filename().native(),
               ", framework PyTorch or Transformers; it is then found below /kaggle/input");
  }
  std::string offline = environment_variable_or_empty("HF_HUB_OFFLINE").value_or("");
  std::ranges::transform(offline, offline.begin(), [](unsigned char c) { return std::tolower(c); });
  if (detail::read_bool(offline) == true) {
    return "HF_HUB_OFFLINE is set: copy its folder, with config.json and model.safetensors, and name it with --init "
           "FOLDER";
  }
  return str("download it: python3 -c \"from huggingface_hub import snapshot_download as get; get('", name, "')\"");
}

}  // namespace

std::optional<fs::path> find_run_file(const fs::path& from, const std::string& name) {
  fs::path file = run_of(from) / name;
  return fs::exists(file) ? std::optional(file) : std::nullopt;
}

std::optional<fs::path> find_description(const fs::path& from) {
  const fs::path folder = run_of(from) / kModelFolder;
  return fs::exists(folder / kModelConfigFile) ? std::optional(folder) : std::nullopt;
}

fs::path find_weights(const fs::path& from) {
  const fs::path whole = whole_path(from);
  const fs::path latest = latest_if_runs(whole);
  const fs::path folder = run_of(from) == latest ? latest / kCheckpointsFolder : whole;
  auto found = find_checkpoint(folder, Which::Best, Check::Checksums);
  if (!found.path) found = find_checkpoint(folder, Which::Newest, Check::Checksums);
  if (found.path) return *found.path;
  if (found.passed_over.empty()) {
    fail(ErrorKind::Checkpoint, str("there is no complete checkpoint in ", folder), "train it first");
  }
  fail(ErrorKind::Checkpoint,
       str("there is no complete checkpoint in ", folder, ": ", found.passed_over.front().path.filename(), ": ",
           found.passed_over.front().why),
       "use another copy of it, or train again");
}

void check_model(const fs::path& from) {
  if (find_description(from)) return;
  if (!fs::exists(from / kModelConfigFile)) {
    fail(ErrorKind::Data, str("there is no model in ", from),
         "name the folder of a run, a checkpoint in it, a folder of runs, or a folder with config.json and "
         "model.safetensors");
  }
  const bool is_pickled = fs::exists(from / kPickledFile) || fs::exists(from / kPickledIndexFile);
  if (has_safetensors(from) || !is_pickled) return;
  fail(ErrorKind::Data,
       str(from, " has ", kPickledFile, " and no ", kWeightsFile,
           ": pickled weights can run any code, and are not read"),
       str("convert it with a Python that has torch: .venv/bin/python tools/convert_ckpt.py ",
           shell_quoted(from.native()), " new-folder; then name new-folder"));
}

fs::path find_model(const std::string& folder_or_name, const fs::path& inputs) {
  fs::path folder = folder_or_name;
  if (is_model(folder)) return folder;
  std::vector<fs::path> places = places_of(folder_or_name, inputs);
  if (fs::exists(folder)) places.insert(places.begin(), folder);
  for (const fs::path& place : places) {
    if (auto model = only_model_in(place)) return *model;
  }
  if (fs::exists(folder)) check_model(folder);
  fail(ErrorKind::Data,
       str("there is no folder '", folder_or_name, "', and no such model in the cache of Hugging Face or ", inputs),
       missing_model_hint(folder_or_name));
}

}  // namespace tandem
